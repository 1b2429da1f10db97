"""Compare the interfaces of a package and an exported program: call spec, inputs, outputs, constants.

Leaves are matched by their paths, constants by name; compared are shape and dtype. Pure, over facts that were already
read from both; checks and ``verify --package`` share it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from aotidoctor.model.artifact import ExportedFacts, ProgramLeaf, ProgramTensor, SizeRange
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.evidence import list_names
from aotidoctor.model.record import record


# Differences, and what was compared at all.
@record
class ProgramDifference:
    """A difference: ``aspect`` is ``call``, ``inputs``, ``outputs``, ``constants`` or ``operators``, ``kind`` its kind.

    ``decisive``: compiling the program cannot have given this package. The others happen when a program is compiled
    (ranges are narrowed, sizes specialised), or come and go with the version of torch.
    """

    aspect: str
    kind: str
    subject: str
    package: str
    program: str
    decisive: bool


def program_difference(
    aspect: str, kind: str, subject: str, package: str, program: str, *, decisive: bool = True
) -> ProgramDifference:
    """The difference of ``package`` and ``program`` at ``subject``."""
    return ProgramDifference(
        aspect=aspect, kind=kind, subject=subject, package=package, program=program, decisive=decisive
    )


@record
class ProgramComparison:
    """Result of a comparison: the ``aspects`` that were compared, and what was ``left_out``, with the reason."""

    differences: tuple[ProgramDifference, ...] = ()
    aspects: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def decisive(self) -> tuple[ProgramDifference, ...]:
        """Differences that no compilation makes."""
        return tuple(item for item in self.differences if item.decisive)


def join_comparisons(parts: Iterable[ProgramComparison]) -> ProgramComparison:
    """Join several comparisons into one."""
    found: Sequence[ProgramComparison] = tuple(parts)
    return ProgramComparison(
        differences=tuple(item for part in found for item in part.differences),
        aspects=tuple(dict.fromkeys(aspect for part in found for aspect in part.aspects)),
        left_out=tuple(text for part in found for text in part.left_out),
    )


# Call spec and inputs.
def compare_call(contract: ModelContract, facts: ExportedFacts) -> ProgramComparison:
    """Compare the leaves and their tensors; nothing where one of the two does not list them."""
    if contract.args is None or not contract.leaves:
        return ProgramComparison(left_out=("call spec and inputs: the package does not contain them",))
    if not facts.leaves and contract.leaves:
        return ProgramComparison(left_out=("call spec and inputs: the program does not contain them",))
    ours, theirs = [leaf.path for leaf in contract.leaves], [leaf.path for leaf in facts.leaves]
    if ours != theirs:
        differing = (at for at, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one != other)
        at = next(differing, min(len(ours), len(theirs)))
        kind = "count" if len(ours) != len(theirs) else "order" if sorted(ours) == sorted(theirs) else "names"
        package, program = (
            f"{len(paths)} {'leaf' if len(paths) == 1 else 'leaves'} ({list_names(paths, 8)})"
            for paths in (ours, theirs)
        )
        subject = (ours if at < len(ours) else theirs)[at]
        found = [program_difference("call", kind, subject, package, program)]
        return ProgramComparison(differences=tuple(found), aspects=("call",))
    pairs = list(zip(contract.leaves, facts.leaves, strict=True))
    found = [difference for one, other in pairs for difference in _leaf(one, other, facts.ranges)]
    spec, other_spec = contract.in_spec, facts.in_spec
    if spec is not None and other_spec is not None and spec != other_spec and _parsed(spec) != _parsed(other_spec):
        # Containers of another type around the same leaves; versions of torch spell some of them differently.
        package, program = "a call spec with different containers around the same leaves", "the program's containers"
        found.append(program_difference("call", "containers", "call spec", package, program, decisive=False))
    if not any(item.aspect == "inputs" for item in found):
        found += _equal_size_differences(pairs)
    silent = [leaf.path for leaf in contract.leaves if leaf.kind == "tensor" and leaf.dtype is None]
    left_out = (f"dtype and dims of {', '.join(silent[:5])}: the package does not record them",) if silent else ()
    return ProgramComparison(differences=tuple(found), aspects=("call", "inputs"), left_out=left_out)


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
        # The kind of a leaf that is never read is not certain.
        yield program_difference("call", "kind", one.path, package, program, decisive=one.used is not False)
        return
    tensor = other.tensor
    if other.kind != "tensor" or tensor is None:
        return
    if None not in (one.dtype, tensor.dtype) and one.dtype != tensor.dtype:
        yield program_difference("inputs", "dtype", one.path, str(one.dtype), str(tensor.dtype))
    yield from _dims(one, tensor, ranges)
    device = (tensor.device or "").partition(":")[0]
    if one.device_type and device and one.device_type != device:
        yield program_difference("inputs", "device", one.path, one.device_type, device, decisive=False)


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
            yield program_difference("inputs", "strides", one.path, package, program, decisive=False)


def _rank(one: LeafSpec, rank: int, shape: Sequence[str]) -> ProgramDifference:
    return program_difference("inputs", "rank", one.path, f"{rank} dims", f"{len(shape)} dims")


def _size(subject: str, dim: Dim, size: str, ranges: Mapping[str, SizeRange]) -> ProgramDifference | None:
    """Compare one dim. A package may be narrower than its program, never wider, nor of another fixed size."""
    bounds = ranges.get(size, SizeRange())
    package = f"a size in {_text(dim.min)}..{_text(dim.max)}"
    if size.isdecimal():
        if dim.static is None:
            known = dim.expr is not None and bool(dim.expr.symbols)
            return program_difference("inputs", "dynamic", subject, package, size, decisive=known)
        same = dim.static == int(size)
        return None if same else program_difference("inputs", "size", subject, str(dim.static), size)
    program = f"{size} in {_text(bounds.low)}..{_text(bounds.high)}"
    if dim.static is not None:
        outside = (bounds.low is not None and dim.static < min(bounds.low, 2)) or (
            bounds.high is not None and dim.static > bounds.high
        )
        return program_difference("inputs", "specialized", subject, str(dim.static), program, decisive=outside)
    if dim.max is not None and bounds.high is not None and dim.max != bounds.high:
        return program_difference("inputs", "range", subject, package, program, decisive=dim.max > bounds.high)
    if dim.min is not None and bounds.low is not None and dim.min != bounds.low:
        # 0 and 1 are special to the compiler, which takes them back.
        special = dim.min == 2 and bounds.low < 2
        decisive = 2 <= dim.min < bounds.low
        return None if special else program_difference("inputs", "range", subject, package, program, decisive=decisive)
    return None


def _text(bound: int | None) -> str:
    return "?" if bound is None else str(bound)


def _equal_size_differences(pairs: Sequence[tuple[LeafSpec, ProgramLeaf]]) -> list[ProgramDifference]:
    """Sizes that must be equal in only one of the two. The compiler may make sizes equal, never independent."""
    theirs_of: dict[str, tuple[str, str]] = {}
    ours_of: dict[str, tuple[str, str]] = {}
    for one, other in pairs:
        shape = (other.tensor.shape if other.tensor is not None else None) or ()
        for number, (dim, theirs) in enumerate(zip(one.dims or (), shape, strict=False)):
            place = f"{one.path}.shape[{number}]"
            ours = str(dim.expr) if dim.expr is not None and dim.static is None else ""
            if not ours.isalnum() or not theirs.isalnum() or theirs.isdecimal():
                # Not one plain symbol in both.
                continue
            known, at = theirs_of.setdefault(theirs, (ours, place))
            if known != ours:
                package, program = f"{place} and {at} may differ", f"both are {theirs}"
                return [program_difference("inputs", "shared-size", place, package, program)]
            known, at = ours_of.setdefault(ours, (theirs, place))
            if known != theirs:
                package, program = f"{place} and {at} are equal", f"{theirs} and {known}, which may differ"
                return [program_difference("inputs", "shared-size", place, package, program, decisive=False)]
    return []


# Outputs and constants. Constants of up to so many elements are written into the code.
INLINED = 8
_SIZE = re.compile(r"(\d{1,18})L{0,2}")
_SMALL = ("uint8", "int8", "int16", "int32")


def compare_outputs(contract: ModelContract, facts: ExportedFacts) -> ProgramComparison:
    """Compare number, dtype and fixed sizes of the outputs."""
    users = [output for output in facts.outputs if output.kind == "user_output"]
    if not facts.outputs or contract.n_outputs is None:
        return ProgramComparison(left_out=("outputs: one of the two does not describe them",))
    if any(output.tensor is None for output in users):
        return ProgramComparison(left_out=("outputs: some of the program's are not tensors",))
    if len(users) != contract.n_outputs:
        package, program = (f"{count} outputs" for count in (contract.n_outputs, len(users)))
        return ProgramComparison(
            differences=(program_difference("outputs", "count", "result", package, program),), aspects=("outputs",)
        )
    found = []
    for ours, theirs in zip(contract.outputs, users, strict=False) if len(contract.outputs) == len(users) else ():
        tensor = theirs.tensor
        if tensor is None:
            continue
        if ours.dtype is not None and tensor.dtype is not None and ours.dtype != tensor.dtype:
            # Reductions (any, a product of int8) that lose the operator's small dtype: it becomes bool, or is promoted.
            sure = not (tensor.dtype in _SMALL and ours.dtype in ("bool", "int64"))
            found.append(program_difference("outputs", "dtype", ours.path, ours.dtype, tensor.dtype, decisive=sure))
        if ours.shape is None or tensor.shape is None:
            continue
        fixed = [(_number(one), _number(other)) for one, other in zip(ours.shape, tensor.shape, strict=False)]
        if len(ours.shape) != len(tensor.shape) or any(None not in pair and pair[0] != pair[1] for pair in fixed):
            shapes = _result_shape(ours.shape), _result_shape(tensor.shape)
            found.append(program_difference("outputs", "shape", ours.path, *shapes))
    return ProgramComparison(differences=tuple(found), aspects=("outputs",))


def compare_constants(contract: ModelContract, facts: ExportedFacts) -> ProgramComparison:
    """Compare parameters and buffers by their names in the model."""
    theirs = {constant.fqn: constant for constant in facts.constants}
    ours = [constant for constant in contract.constants if not constant.from_folded]
    found = []
    for one in ours:
        name, other = one.fqn, theirs.get(one.original_fqn)
        if other is None:
            # Constants that the compiler makes have names of its own; parameters and buffers have the model's.
            if one.kind in ("parameter", "buffer") and not name.startswith("_"):
                there = "no parameter or buffer of that name"
                found.append(program_difference("constants", "name", name, f"a {one.kind} {name}", there))
        elif (tensor := other.tensor) is not None:
            shape = tuple(map(str, one.shape)) if one.shape is not None else None
            if shape is not None and tensor.shape is not None and shape != tensor.shape:
                found.append(
                    program_difference("constants", "shape", name, _result_shape(shape), _result_shape(tensor.shape))
                )
            elif None not in (one.dtype, tensor.dtype) and one.dtype != tensor.dtype:
                found.append(program_difference("constants", "dtype", name, str(one.dtype), str(tensor.dtype)))
    known = {constant.original_fqn for constant in contract.constants}
    absent = []
    for entry in facts.constants:
        if entry.fqn not in known and entry.used and entry.kind != "custom_obj" and entry.tensor is not None:
            sizes = [int(size) for size in entry.tensor.shape or () if size.isdecimal() and len(size) < 19]
            absent += [entry.fqn] if prod(sizes) > INLINED else []
    left_out = (f"{list_names(absent, 5)}: not in the package (folded, or not needed)",) if absent else ()
    return ProgramComparison(differences=tuple(found), aspects=("constants",), left_out=left_out)


def _number(size: str) -> int | None:
    found = _SIZE.fullmatch(size)
    return int(found[1]) if found is not None else None


def _result_shape(sizes: Sequence[str]) -> str:
    return f"[{', '.join(sizes)}]"
