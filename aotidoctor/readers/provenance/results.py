"""Outputs, and constants by name, shape and dtype."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.contract import ConstantSpec, Contract, OutputSpec
from aotidoctor.model.phrases import listed
from aotidoctor.model.program import ProgramConstant, ProgramOutput
from aotidoctor.readers.provenance.difference import Compared, Difference

# Constants of so few elements are written into the code.
INLINED = 8
_SIZE = re.compile(r"(\d{1,18})L{0,2}")


def compare_outputs(contract: Contract, facts: ExportedFacts) -> Compared:
    """Number, dtype and fixed sizes of the outputs."""
    users = [output for output in facts.outputs if output.kind == "user_output"]
    if not facts.outputs or contract.n_outputs is None:
        return Compared(left_out=("outputs: one of the two does not describe them",))
    if any(output.tensor is None for output in users):
        return Compared(left_out=("outputs: some of the program's are not tensors",))
    if len(users) != contract.n_outputs:
        package, program = (f"{count} outputs" for count in (contract.n_outputs, len(users)))
        return Compared(differences=(_make("outputs", "count", "result", package, program),), aspects=("outputs",))
    pairs = zip(contract.outputs, users, strict=False) if len(contract.outputs) == len(users) else ()
    found = tuple(item for ours, theirs in pairs for item in _output(ours, theirs))
    return Compared(differences=found, aspects=("outputs",))


def _output(ours: OutputSpec, theirs: ProgramOutput) -> Iterator[Difference]:
    tensor = theirs.tensor
    if tensor is None:
        return
    if None not in (ours.dtype, tensor.dtype) and ours.dtype != tensor.dtype:
        yield _make("outputs", "dtype", ours.path, str(ours.dtype), str(tensor.dtype))
    if ours.shape is None or tensor.shape is None:
        return
    fixed = [(_number(one), _number(other)) for one, other in zip(ours.shape, tensor.shape, strict=False)]
    if len(ours.shape) != len(tensor.shape) or any(None not in pair and pair[0] != pair[1] for pair in fixed):
        yield _make("outputs", "shape", ours.path, _shape(ours.shape), _shape(tensor.shape))


def compare_constants(contract: Contract, facts: ExportedFacts) -> Compared:
    """Parameters and buffers by their names in the model."""
    theirs = {constant.fqn: constant for constant in facts.constants}
    ours = [constant for constant in contract.constants if not constant.from_folded]
    found = [difference for constant in ours for difference in _constant(constant, theirs.get(constant.original_fqn))]
    known = {constant.original_fqn for constant in contract.constants}
    absent = [constant.fqn for constant in facts.constants if _must_be_there(constant, known)]
    left_out: tuple[str, ...] = ()
    if absent:
        left_out = (f"{listed(absent, 5)}: not in the package (folded, or not needed)",)
    return Compared(differences=tuple(found), aspects=("constants",), left_out=left_out)


def _constant(ours: ConstantSpec, theirs: ProgramConstant | None) -> Iterator[Difference]:
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
        yield _make("constants", "shape", name, _shape(tuple(map(str, ours.shape))), _shape(tensor.shape))
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


def _shape(sizes: Sequence[str]) -> str:
    return f"[{', '.join(sizes)}]"


def _make(aspect: str, kind: str, subject: str, package: str, program: str) -> Difference:
    return Difference(aspect=aspect, kind=kind, subject=subject, package=package, program=program, decisive=True)
