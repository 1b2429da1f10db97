"""What the package will change, carry and drop, as the archive has it; and what the archive itself has lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.phrases import listed
from aotidoctor.model.program import ProgramLeaf
from aotidoctor.model.program_archive import Payload, ProgramArchive
from aotidoctor.program.document import Graph, argument_name
from aotidoctor.program.found import Found
from aotidoctor.program.signature import Signature
from aotidoctor.program.state import Leaf, Write, add_lost, check_leaf, check_mutations, check_size
from aotidoctor.program.static_writes import shows, written

_SYMBOL = re.compile(r"\b(?:zuf|zf|[suz])\d+\b")


def check_state(archive: ProgramArchive, signature: Signature, top: Graph, found: Found) -> None:
    """All of it."""
    paths = {leaf.name: leaf.path for leaf in archive.facts.leaves if leaf.name}
    check_mutations(signature, paths, _writes(top), found)
    lists = (archive.weights or {}, archive.constants or {})
    check_size({name: _nbytes(payload) for listed in lists for name, payload in listed.items()}, found)
    _check_lost(archive, found)
    for leaf in archive.facts.leaves:
        if leaf.kind == "constant" and leaf.value is not None:
            check_leaf(Leaf(kind="constant", path=leaf.path, node=leaf.name, text=leaf.value), found)
        elif leaf.kind == "symbol" and _is_lost(archive, leaf, top):
            check_leaf(Leaf(kind="symbol", path=leaf.path, node=leaf.name), found)


def _writes(top: Graph) -> Iterator[Write]:
    """By each of PyTorch's operators that writes to an input, also through views of it."""
    roots = {name: name for item in top.inputs if (name := argument_name(item))}
    for node in top.nodes:
        places = written(node)
        for at in (*places, 0) if shows(node) else places:
            root = roots.get(argument_name(node.inputs[at][1])) if at < len(node.inputs) else None
            if root is None:
                continue
            if at in places:
                yield Write(node=node, target=node.target, root=root)
            for item in node.outputs:
                roots.setdefault(argument_name(item), root)


def _nbytes(payload: Payload) -> int:
    return ITEMSIZE.get(payload.stored.dtype or "", 0) * prod(payload.stored.shape or ())


def _check_lost(archive: ProgramArchive, found: Found) -> None:
    for what, payloads, pickle in (
        ("weights", archive.weights, archive.weights_pickle),
        ("constants", archive.constants, archive.constants_pickle),
    ):
        if payloads is None and pickle is None:
            add_lost(what, f"the archive has no list of its {what}, or an unreadable one", found)
        lost = [name for name, payload in (payloads or {}).items() if payload.member is None]
        if lost:
            add_lost(what, f"the archive has no member with the bytes of {listed(lost, 3)}", found)
    if not archive.has_samples:
        add_lost("sample-inputs", "the archive has no sample inputs", found)


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
