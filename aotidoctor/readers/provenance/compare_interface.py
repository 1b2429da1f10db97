"""Compare the interfaces of a package and an exported program: call spec, inputs, outputs, constants.

Leaves are matched by their paths, constants by name; compared are shape and dtype. Pure, over facts that were already
read from both; checks and ``verify --against`` share it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from aotidoctor.model.artifact import (
    ExportedFacts,
    ProgramConstant,
    ProgramLeaf,
    ProgramOutput,
    ProgramTensor,
    SizeRange,
)
from aotidoctor.model.contract import ConstantSpec, Dim, LeafSpec, ModelContract, OutputSpec
from aotidoctor.model.evidence import list_names
from aotidoctor.model.record import record

# Differences, and what was compared at all.


@record
class ProgramDifference:
    """``aspect`` is ``call``, ``inputs``, ``outputs``, ``constants`` or ``operators``; ``kind`` its variant.

    ``decisive``: compiling the program cannot have given this package. The others happen when a program is compiled
    (ranges are narrowed, sizes specialised), or come and go with the version of torch.
    """

    aspect: str
    kind: str
    subject: str
    package: str
    program: str
    decisive: bool


@record
class ProgramComparison:
    """``aspects`` were compared; ``left_out`` tells what could not be, and why."""

    differences: tuple[ProgramDifference, ...] = ()
    aspects: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def decisive(self) -> tuple[ProgramDifference, ...]:
        """Differences that no compilation makes."""
        return tuple(item for item in self.differences if item.decisive)


def join_comparisons(parts: Iterable[ProgramComparison]) -> ProgramComparison:
    """All of several comparisons."""
    found: Sequence[ProgramComparison] = tuple(parts)
    return ProgramComparison(
        differences=tuple(item for part in found for item in part.differences),
        aspects=tuple(dict.fromkeys(aspect for part in found for aspect in part.aspects)),
        left_out=tuple(text for part in found for text in part.left_out),
    )


# Call spec and inputs.


def compare_call(contract: ModelContract, facts: ExportedFacts) -> ProgramComparison:
    """The leaves and their tensors; nothing where one of the two does not list them."""
    if contract.args is None or not contract.leaves:
        return ProgramComparison(left_out=("call spec and inputs: the package does not contain them",))
    if not facts.leaves and contract.leaves:
        return ProgramComparison(left_out=("call spec and inputs: the program does not contain them",))
    ours, theirs = [leaf.path for leaf in contract.leaves], [leaf.path for leaf in facts.leaves]
    if ours != theirs:
        return ProgramComparison(differences=(_paths(ours, theirs),), aspects=("call",))
    pairs = list(zip(contract.leaves, facts.leaves, strict=True))
    found = [difference for one, other in pairs for difference in _leaf(one, other, facts.ranges)]
    found += _trees(contract.in_spec, facts.in_spec)
    if not any(item.aspect == "inputs" for item in found):
        found += _equal_size_differences(pairs)
    silent = [leaf.path for leaf in contract.leaves if leaf.kind == "tensor" and leaf.dtype is None]
    left_out = (f"dtype and dims of {', '.join(silent[:5])}: the package does not record them",) if silent else ()
    return ProgramComparison(differences=tuple(found), aspects=("call", "inputs"), left_out=left_out)


def _paths(ours: Sequence[str], theirs: Sequence[str]) -> ProgramDifference:
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(ours), len(theirs)))
    kind = "count" if len(ours) != len(theirs) else "order" if sorted(ours) == sorted(theirs) else "names"
    subject = (ours if at < len(ours) else theirs)[at]
    package, program = (_leaves(paths) for paths in (ours, theirs))
    return _difference("call", kind, subject, package, program, decisive=True)


def _leaves(paths: Sequence[str]) -> str:
    return f"{len(paths)} {'leaf' if len(paths) == 1 else 'leaves'} ({list_names(paths, 8)})"


def _trees(ours: str | None, theirs: str | None) -> list[ProgramDifference]:
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


def _leaf(one: LeafSpec, other: ProgramLeaf, ranges: Mapping[str, SizeRange]) -> Iterator[ProgramDifference]:
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


def _dims(one: LeafSpec, tensor: ProgramTensor, ranges: Mapping[str, SizeRange]) -> Iterator[ProgramDifference]:
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


def _rank(one: LeafSpec, rank: int, shape: Sequence[str]) -> ProgramDifference:
    return _difference("inputs", "rank", one.path, f"{rank} dims", f"{len(shape)} dims", decisive=True)


def _size(subject: str, dim: Dim, size: str, ranges: Mapping[str, SizeRange]) -> ProgramDifference | None:
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
        outside = (bounds.low is not None and dim.static < min(bounds.low, 2)) or (
            bounds.high is not None and dim.static > bounds.high
        )
        return _difference("inputs", "specialized", subject, str(dim.static), program, decisive=outside)
    if dim.max is not None and bounds.high is not None and dim.max != bounds.high:
        return _difference("inputs", "range", subject, package, program, decisive=dim.max > bounds.high)
    if dim.min is not None and bounds.low is not None and dim.min != bounds.low:
        # 0 and 1 are special to the compiler, which takes them back.
        special = dim.min == 2 and bounds.low < 2
        decisive = 2 <= dim.min < bounds.low
        return None if special else _difference("inputs", "range", subject, package, program, decisive=decisive)
    return None


def _text(bound: int | None) -> str:
    return "?" if bound is None else str(bound)


def _equal_size_differences(pairs: Sequence[tuple[LeafSpec, ProgramLeaf]]) -> list[ProgramDifference]:
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
        for at, (dim, size) in enumerate(
            zip(one.dims or (), (other.tensor.shape if other.tensor is not None else None) or (), strict=False)
        ):
            ours = str(dim.expr) if dim.expr is not None and dim.static is None else ""
            if ours.isalnum() and size.isalnum() and not size.isdecimal():
                yield f"{one.path}.shape[{at}]", ours, size


def _difference(
    aspect: str, kind: str, subject: str, package: str, program: str, *, decisive: bool
) -> ProgramDifference:
    return ProgramDifference(
        aspect=aspect, kind=kind, subject=subject, package=package, program=program, decisive=decisive
    )


# Outputs and constants.

# Constants of so few elements are written into the code.
INLINED = 8
_SIZE = re.compile(r"(\d{1,18})L{0,2}")


def compare_outputs(contract: ModelContract, facts: ExportedFacts) -> ProgramComparison:
    """Number, dtype and fixed sizes of the outputs."""
    users = [output for output in facts.outputs if output.kind == "user_output"]
    if not facts.outputs or contract.n_outputs is None:
        return ProgramComparison(left_out=("outputs: one of the two does not describe them",))
    if any(output.tensor is None for output in users):
        return ProgramComparison(left_out=("outputs: some of the program's are not tensors",))
    if len(users) != contract.n_outputs:
        package, program = (f"{count} outputs" for count in (contract.n_outputs, len(users)))
        return ProgramComparison(
            differences=(_make("outputs", "count", "result", package, program),), aspects=("outputs",)
        )
    pairs = zip(contract.outputs, users, strict=False) if len(contract.outputs) == len(users) else ()
    found = tuple(item for ours, theirs in pairs for item in _output(ours, theirs))
    return ProgramComparison(differences=found, aspects=("outputs",))


def _output(ours: OutputSpec, theirs: ProgramOutput) -> Iterator[ProgramDifference]:
    tensor = theirs.tensor
    if tensor is None:
        return
    if None not in (ours.dtype, tensor.dtype) and ours.dtype != tensor.dtype:
        yield _make("outputs", "dtype", ours.path, str(ours.dtype), str(tensor.dtype))
    if ours.shape is None or tensor.shape is None:
        return
    fixed = [(_number(one), _number(other)) for one, other in zip(ours.shape, tensor.shape, strict=False)]
    if len(ours.shape) != len(tensor.shape) or any(None not in pair and pair[0] != pair[1] for pair in fixed):
        yield _make("outputs", "shape", ours.path, _result_shape(ours.shape), _result_shape(tensor.shape))


def compare_constants(contract: ModelContract, facts: ExportedFacts) -> ProgramComparison:
    """Parameters and buffers by their names in the model."""
    theirs = {constant.fqn: constant for constant in facts.constants}
    ours = [constant for constant in contract.constants if not constant.from_folded]
    found = [difference for constant in ours for difference in _constant(constant, theirs.get(constant.original_fqn))]
    known = {constant.original_fqn for constant in contract.constants}
    absent = [constant.fqn for constant in facts.constants if _must_be_there(constant, known)]
    left_out: tuple[str, ...] = ()
    if absent:
        left_out = (f"{list_names(absent, 5)}: not in the package (folded, or not needed)",)
    return ProgramComparison(differences=tuple(found), aspects=("constants",), left_out=left_out)


def _constant(ours: ConstantSpec, theirs: ProgramConstant | None) -> Iterator[ProgramDifference]:
    name = ours.fqn
    if theirs is None:
        # Constants that the compiler makes have names of its own; parameters and buffers have the model's.
        if ours.kind in ("parameter", "buffer") and not name.startswith("_"):
            there = "no parameter or buffer of that name"
            yield _make("constants", "name", name, f"a {ours.kind} {name}", there)
        return
    tensor = theirs.tensor
    if tensor is None:
        return
    if ours.shape is not None and tensor.shape is not None and tuple(map(str, ours.shape)) != tensor.shape:
        yield _make("constants", "shape", name, _result_shape(tuple(map(str, ours.shape))), _result_shape(tensor.shape))
    elif None not in (ours.dtype, tensor.dtype) and ours.dtype != tensor.dtype:
        yield _make("constants", "dtype", name, str(ours.dtype), str(tensor.dtype))


def _must_be_there(constant: ProgramConstant, known: set[str]) -> bool:
    if constant.fqn in known or not constant.used or constant.kind == "custom_obj" or constant.tensor is None:
        return False
    sizes = constant.tensor.shape or ()
    return prod(int(size) for size in sizes if size.isdecimal() and len(size) < 19) > INLINED


def _number(size: str) -> int | None:
    found = _SIZE.fullmatch(size)
    return int(found[1]) if found is not None else None


def _result_shape(sizes: Sequence[str]) -> str:
    return f"[{', '.join(sizes)}]"


def _make(aspect: str, kind: str, subject: str, package: str, program: str) -> ProgramDifference:
    return ProgramDifference(aspect=aspect, kind=kind, subject=subject, package=package, program=program, decisive=True)
