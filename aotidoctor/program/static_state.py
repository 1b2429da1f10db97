"""Rules A08, A09, A11 and L03: inputs that are written to, large weights, inputs that are no tensors, lost bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.exported import EXPECTED_STATE, LARGE
from aotidoctor.model.program import ProgramLeaf
from aotidoctor.model.program_archive import Payload, ProgramArchive
from aotidoctor.program.document import Graph, Node, argument_name
from aotidoctor.program.found import Found
from aotidoctor.program.static_writes import shows, written

_SYMBOL = re.compile(r"\b(?:zuf|zf|[suz])\d+\b")


def check_state(archive: ProgramArchive, top: Graph, found: Found) -> None:
    """What the package will change, carry and drop."""
    _check_mutations(archive, top, found)
    _check_size(archive, found)
    _check_lost(archive, found)
    _check_samples(archive, found)
    for leaf in archive.facts.leaves:
        _check_kind(archive, leaf, top, found)


def _check_mutations(archive: ProgramArchive, top: Graph, found: Found) -> None:
    paths = {leaf.name: leaf.path for leaf in archive.facts.leaves if leaf.name}
    nodes = {name: node for node in top.nodes for item in node.outputs if (name := argument_name(item))}
    for output in archive.facts.outputs:
        node = nodes.get(output.name or "")
        target = output.target or ""
        if output.kind == "user_input_mutation":
            _add_input(found, node, paths.get(target, target), "the graph's signature")
        elif output.kind in ("buffer_mutation", "parameter_mutation"):
            _add_state(found, node, target, output.kind.removesuffix("_mutation"))
    constants = {constant.name: constant for constant in archive.facts.constants}
    for node, root in _writes(top):
        constant = constants.get(root)
        if root in paths:
            _add_input(found, node, paths[root], node.target)
        elif constant is not None and constant.kind in ("buffer", "parameter"):
            _add_state(found, node, constant.fqn, constant.kind)


def _writes(top: Graph) -> Iterator[tuple[Node, str]]:
    """``(node, input)`` for each of PyTorch's operators that writes to an input, also through views of it."""
    roots = {name: name for item in top.inputs if (name := argument_name(item))}
    for node in top.nodes:
        places = written(node)
        for at in (*places, 0) if shows(node) else places:
            root = roots.get(argument_name(node.inputs[at][1])) if at < len(node.inputs) else None
            if root is None:
                continue
            if at in places:
                yield node, root
            for item in node.outputs:
                roots.setdefault(argument_name(item), root)


def _add_input(found: Found, node: Node | None, path: str, by: str) -> None:
    observed = f"{path} is written to ({by})"
    expected = "inputs that are only read: the package writes into the caller's tensors"
    found.add("A08", "input-mutation", node=node, target=path, observed=observed, expected=expected)


def _add_state(found: Found, node: Node | None, name: str, kind: str) -> None:
    expected = EXPECTED_STATE[kind]
    observed = f"each call changes {name}"
    found.add("A08", f"{kind}-mutation", node=node, target=name, observed=observed, expected=expected)


def _check_size(archive: ProgramArchive, found: Found) -> None:
    sizes = {name: _nbytes(payload) for name, payload in _payloads(archive)}
    total = sum(sizes.values())
    if total > LARGE:
        largest = max(sizes, key=lambda name: sizes[name])
        observed = f"{total:,} bytes of weights and constants, the largest {largest} with {sizes[largest]:,}"
        expected = f"at most {LARGE:,} bytes, which go into the library itself"
        found.add("A09", "large-constants", target=largest, observed=observed, expected=expected, bytes=total)


def _payloads(archive: ProgramArchive) -> Iterator[tuple[str, Payload]]:
    for listed in (archive.weights, archive.constants):
        yield from (listed or {}).items()


def _nbytes(payload: Payload) -> int:
    count = ITEMSIZE.get(payload.stored.dtype or "", 0)
    for size in payload.stored.shape or ():
        count *= size
    return count


def _check_lost(archive: ProgramArchive, found: Found) -> None:
    for what, listed, pickle in (
        ("weights", archive.weights, archive.weights_pickle),
        ("constants", archive.constants, archive.constants_pickle),
    ):
        expected = f"the {what} of the program"
        if listed is None and pickle is None:
            observed = f"the archive has no list of its {what}, or an unreadable one"
            found.add("L03", what, target=what, observed=observed, expected=expected)
        lost = [name for name, payload in (listed or {}).items() if payload.member is None]
        if lost:
            more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
            observed = f"the archive has no member with the bytes of {', '.join(lost[:3])}{more}"
            found.add("L03", what, target=what, observed=observed, expected=expected)


def _check_samples(archive: ProgramArchive, found: Found) -> None:
    if not archive.has_samples:
        observed, expected = "the archive has no sample inputs", "the sample inputs of the program"
        found.add("L03", "sample-inputs", target="sample-inputs", observed=observed, expected=expected)


def _check_kind(archive: ProgramArchive, leaf: ProgramLeaf, top: Graph, found: Found) -> None:
    if leaf.kind == "constant" and leaf.value is not None:
        observed = f"{leaf.path} = {leaf.value} is part of the program"
        expected = "the same value at each call: a different one is ignored"
        found.add("A11", "constant-input", node=leaf.name, target=leaf.path, observed=observed, expected=expected)
    elif leaf.kind == "symbol" and _is_lost(archive, leaf, top):
        observed = f"{leaf.path} is a number that may change"
        expected = "a tensor, or a size of a tensor: the package is called with tensors only"
        found.add("A11", "symbolic-input", node=leaf.name, target=leaf.path, observed=observed, expected=expected)


def _is_lost(archive: ProgramArchive, leaf: ProgramLeaf, top: Graph) -> bool:
    """A number that is also the size of an input can be had from there; one that nothing reads does not matter."""
    used = any(argument_name(given) == leaf.name for node in top.nodes for _, given in node.inputs)
    sizes = {
        symbol
        for other in archive.facts.leaves
        if other.tensor is not None
        for size in other.tensor.shape or ()
        for symbol in _SYMBOL.findall(size)
    }
    return used and not set(_SYMBOL.findall(str(top.numbers.get(leaf.name)))) <= sizes
