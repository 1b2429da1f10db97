"""Call spec and inputs: the leaves by their paths, then what both say of each tensor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.contract import Contract, Dim, LeafSpec
from aotidoctor.model.phrases import listed
from aotidoctor.model.program import ProgramLeaf, ProgramTensor, SizeRange
from aotidoctor.readers.provenance.difference import Compared, Difference


def compare_call(contract: Contract, facts: ExportedFacts) -> Compared:
    """The leaves and their tensors; nothing where one of the two does not list them."""
    if contract.args is None or not contract.leaves:
        return Compared(left_out=("call spec and inputs: the package does not contain them",))
    if not facts.leaves and contract.leaves:
        return Compared(left_out=("call spec and inputs: the program does not contain them",))
    ours, theirs = [leaf.path for leaf in contract.leaves], [leaf.path for leaf in facts.leaves]
    if ours != theirs:
        return Compared(differences=(_paths(ours, theirs),), aspects=("call",))
    pairs = list(zip(contract.leaves, facts.leaves, strict=True))
    found = [difference for one, other in pairs for difference in _leaf(one, other, facts.ranges)]
    found += _trees(contract.in_spec, facts.in_spec)
    if not any(item.aspect == "inputs" for item in found):
        found += _shared(pairs)
    silent = [leaf.path for leaf in contract.leaves if leaf.kind == "tensor" and leaf.dtype is None]
    left_out = (f"dtype and dims of {', '.join(silent[:5])}: the package does not record them",) if silent else ()
    return Compared(differences=tuple(found), aspects=("call", "inputs"), left_out=left_out)


def _paths(ours: Sequence[str], theirs: Sequence[str]) -> Difference:
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(ours), len(theirs)))
    kind = "count" if len(ours) != len(theirs) else "order" if sorted(ours) == sorted(theirs) else "names"
    subject = (ours if at < len(ours) else theirs)[at]
    package, program = (_leaves(paths) for paths in (ours, theirs))
    return _difference("call", kind, subject, package, program, decisive=True)


def _leaves(paths: Sequence[str]) -> str:
    return f"{len(paths)} {'leaf' if len(paths) == 1 else 'leaves'} ({listed(paths, 8)})"


def _trees(ours: str | None, theirs: str | None) -> list[Difference]:
    """Containers of another type around the same leaves; versions of torch spell some of them differently."""
    if ours is None or theirs is None or ours == theirs or _parsed(ours) == _parsed(theirs):
        return []
    package, program = "a call spec with different containers around the same leaves", "the program's containers"
    return [_difference("call", "containers", "call spec", package, program, decisive=False)]


def _parsed(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _leaf(one: LeafSpec, other: ProgramLeaf, ranges: Mapping[str, SizeRange]) -> Iterator[Difference]:
    if one.kind == "unknown" or other.kind == "symbol":
        return
    if one.kind != other.kind:
        package, program = (f"a {kind}" if kind == "tensor" else "a value" for kind in (one.kind, other.kind))
        # A leaf that nothing reads may be told apart by luck only.
        yield _difference("call", "kind", one.path, package, program, decisive=one.used is not False)
        return
    tensor = other.tensor
    if other.kind != "tensor" or tensor is None:
        return
    if None not in (one.dtype, tensor.dtype) and one.dtype != tensor.dtype:
        yield _difference("inputs", "dtype", one.path, str(one.dtype), str(tensor.dtype), decisive=True)
    yield from _dims(one, tensor, ranges)
    device = (tensor.device or "").partition(":")[0]
    if one.device_type and device and one.device_type != device:
        yield _difference("inputs", "device", one.path, one.device_type, device, decisive=False)


def _dims(one: LeafSpec, tensor: ProgramTensor, ranges: Mapping[str, SizeRange]) -> Iterator[Difference]:
    if tensor.shape is None:
        return
    if one.dims is None:
        if one.rank is not None and one.rank != len(tensor.shape):
            yield _rank(one, one.rank, tensor.shape)
        return
    # Without a rank the package shows the dims that it mentions: there may be more.
    if len(one.dims) > len(tensor.shape) or one.rank not in (None, len(tensor.shape)):
        yield _rank(one, len(one.dims), tensor.shape)
        return
    for at, (dim, size) in enumerate(zip(one.dims, tensor.shape, strict=False)):
        found = _size(f"{one.path}.shape[{at}]", dim, size, ranges)
        if found is not None:
            yield found
    constant = [None if stride is None else str(stride) for stride in one.strides or ()]
    if tensor.stride is not None and len(constant) == len(tensor.stride):
        both = [(a, b) for a, b in zip(constant, tensor.stride, strict=True) if a is not None and b.isdecimal()]
        if any(a != b for a, b in both) and not any(size in ("0", "1") for size in tensor.shape):
            package, program = (f"strides ({', '.join(map(str, found))})" for found in (constant, tensor.stride))
            yield _difference("inputs", "strides", one.path, package, program, decisive=False)


def _rank(one: LeafSpec, rank: int, shape: Sequence[str]) -> Difference:
    return _difference("inputs", "rank", one.path, f"{rank} dims", f"{len(shape)} dims", decisive=True)


def _size(subject: str, dim: Dim, size: str, ranges: Mapping[str, SizeRange]) -> Difference | None:
    """One dim. A package may be narrower than its program, never wider, nor of another fixed size."""
    bounds = ranges.get(size, SizeRange())
    package = f"a size in {_text(dim.min)}..{_text(dim.max)}"
    if size.isdecimal():
        if dim.static is None:
            known = dim.expr is not None and bool(dim.expr.symbols)
            return _difference("inputs", "dynamic", subject, package, size, decisive=known)
        same = dim.static == int(size)
        return None if same else _difference("inputs", "size", subject, str(dim.static), size, decisive=True)
    program = f"{size} in {_text(bounds.low)}..{_text(bounds.high)}"
    if dim.static is not None:
        outside = _outside(dim.static, bounds)
        return _difference("inputs", "specialized", subject, str(dim.static), program, decisive=outside)
    if dim.max is not None and bounds.high is not None and dim.max != bounds.high:
        return _difference("inputs", "range", subject, package, program, decisive=dim.max > bounds.high)
    if dim.min is not None and bounds.low is not None and dim.min != bounds.low:
        # 0 and 1 are special to the compiler, which takes them back.
        special = dim.min == 2 and bounds.low < 2
        decisive = 2 <= dim.min < bounds.low
        return None if special else _difference("inputs", "range", subject, package, program, decisive=decisive)
    return None


def _outside(size: int, bounds: SizeRange) -> bool:
    return (bounds.low is not None and size < min(bounds.low, 2)) or (bounds.high is not None and size > bounds.high)


def _text(bound: int | None) -> str:
    return "?" if bound is None else str(bound)


def _shared(pairs: Sequence[tuple[LeafSpec, ProgramLeaf]]) -> list[Difference]:
    """Sizes that must be equal in one of the two alone. The compiler may tie some together, never set them free."""
    theirs_of: dict[str, tuple[str, str]] = {}
    ours_of: dict[str, tuple[str, str]] = {}
    for place, ours, theirs in _symbols(pairs):
        known, at = theirs_of.setdefault(theirs, (ours, place))
        if known != ours:
            package, program = f"{place} and {at} may differ", f"both are {theirs}"
            return [_difference("inputs", "shared-size", place, package, program, decisive=True)]
        known, at = ours_of.setdefault(ours, (theirs, place))
        if known != theirs:
            package, program = f"{place} and {at} are equal", f"{theirs} and {known}, which may differ"
            return [_difference("inputs", "shared-size", place, package, program, decisive=False)]
    return []


def _symbols(pairs: Sequence[tuple[LeafSpec, ProgramLeaf]]) -> Iterator[tuple[str, str, str]]:
    """Place and symbol of both, for each dim that is one plain symbol in both."""
    for one, other in pairs:
        for at, (dim, size) in enumerate(zip(one.dims or (), _shape(other), strict=False)):
            ours = str(dim.expr) if dim.expr is not None and dim.static is None else ""
            if ours.isalnum() and size.isalnum() and not size.isdecimal():
                yield f"{one.path}.shape[{at}]", ours, size


def _shape(leaf: ProgramLeaf) -> tuple[str, ...]:
    return (leaf.tensor.shape if leaf.tensor is not None else None) or ()


def _difference(aspect: str, kind: str, subject: str, package: str, program: str, *, decisive: bool) -> Difference:
    return Difference(aspect=aspect, kind=kind, subject=subject, package=package, program=program, decisive=decisive)
