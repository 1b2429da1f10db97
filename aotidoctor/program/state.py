"""Rules A08, A09, A11 and L03: inputs that are written to, large weights, inputs that are no tensors, lost parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aotidoctor.model.record import record
from aotidoctor.program.found import Found, Place
from aotidoctor.program.signature import MUTATIONS, Signature

LARGE = 2_000_000_000
_EXPECTED = {
    "buffer": "a stateless model, if calls should be independent",
    "parameter": "parameters that are only read: the package gives each one that changes as one more output",
}


@record
class Write:
    """``node`` writes to the graph's input ``root``, by calling ``target``."""

    node: Place
    target: str
    root: str


@record
class Leaf:
    """A leaf of the call that is not a tensor: ``kind`` is ``object``, ``constant`` or ``symbol``.

    ``text`` is the class of an object, the value of a constant, and what is known of a symbol.
    """

    kind: str
    path: str
    node: Place | str | None
    text: str = ""


def check_mutations(signature: Signature, paths: Mapping[str, str], writes: Iterable[Write], found: Found) -> None:
    """By the signature, then by the operators that are called. ``paths`` are the user's, by the names of inputs."""
    for spec in signature.outputs:
        if spec.kind in MUTATIONS:
            kind, name = MUTATIONS[spec.kind], spec.target or ""
            name = paths.get(name, name) if kind == "user_input" else name
            _add_write(kind, name, signature.nodes.get(spec.name), "the graph's signature", found)
    pairs = zip(signature.placeholders, signature.inputs, strict=False)
    roles = {place.name: (spec.kind, spec.target or "") for place, spec in pairs}
    for write in writes:
        kind, name = roles.get(write.root, ("", ""))
        if kind in MUTATIONS.values():
            name = paths.get(write.root, write.root) if kind == "user_input" else name
            _add_write(kind, name, write.node, write.target, found)


def _add_write(kind: str, name: str, node: Place | None, by: str, found: Found) -> None:
    if kind == "user_input":
        observed = f"{name} is written to ({by})"
        expected = "inputs that are only read: the package writes into the caller's tensors"
        found.add("A08", "input-mutation", node=node, target=name, observed=observed, expected=expected)
    else:
        observed = f"each call changes {name}"
        found.add("A08", f"{kind}-mutation", node=node, target=name, observed=observed, expected=_EXPECTED[kind])


def check_size(sizes: Mapping[str, int], found: Found) -> None:
    """Bytes of weights and constants, by name."""
    total = sum(sizes.values())
    if total > LARGE:
        largest = max(sizes, key=lambda name: sizes[name])
        observed = f"{total:,} bytes of weights and constants, the largest {largest} with {sizes[largest]:,}"
        expected = f"at most {LARGE:,} bytes, which go into the library itself"
        found.add("A09", "large-constants", target=largest, observed=observed, expected=expected, bytes=total)


def check_leaf(leaf: Leaf, found: Found) -> None:
    """What the package cannot be called with."""
    match leaf.kind:
        case "object":
            kind, observed = "object-input", f"{leaf.path} is a custom object ({leaf.text})"
            expected = "tensors: the package takes only tensors"
        case "constant":
            kind, observed = "constant-input", f"{leaf.path} = {leaf.text} is part of the program"
            expected = "the same value at each call: a different one is ignored"
        case _:
            more = f" ({leaf.text})" if leaf.text else ""
            kind, observed = "symbolic-input", f"{leaf.path} is a number that may change{more}"
            expected = "a tensor, or a size of a tensor: the package is called with tensors only"
    found.add("A11", kind, node=leaf.node, target=leaf.path, observed=observed, expected=expected)


def add_lost(what: str, observed: str, found: Found) -> None:
    """``weights``, ``constants`` or ``sample-inputs`` that cannot be had."""
    expected = f"the {what.replace('-', ' ')} of the program"
    found.add("L03", what, target=what, observed=observed, expected=expected)
