"""Indices that nothing checks: code that was compiled without assertions reads other memory, and says nothing.

``config.assert_indirect_indexing=False`` leaves the checks out. What an input then makes a kernel read is held against
the memory of the table itself: an index is reported only where its element lies beyond all of it, whatever the other
terms of the offset are. A kernel that reads on a condition is left alone, since the condition may be the check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from aotidoctor.localize.blame.bounds import Table, number, table_of
from aotidoctor.localize.blame.chain import Suspect, chain_for
from aotidoctor.localize.blame.computed import Computed, Number, Value, Variable, factor, reads
from aotidoctor.localize.blame.failing_elements import Question, guilt, out_of_range
from aotidoctor.localize.blame.failure import INDEX, Failure
from aotidoctor.localize.blame.flow import Check
from aotidoctor.localize.blame.memory import CallMemories
from aotidoctor.localize.blame.program import Program, program_of
from aotidoctor.localize.kernel_text import text_of
from aotidoctor.model.case import Case
from aotidoctor.model.localization import Chain

# A lambda that is called on a condition.
_CONDITIONAL = re.compile(r"\? *\w+\(\)|decltype\(\w+\(\)\)|\bif *\(tmp")
_MOST_QUESTIONS = 200


def unchecked_chain(case: Case) -> tuple[Failure, Chain] | None:
    """The first element of an input that makes a kernel read outside of a table; None where none is known to."""
    program = program_of(case)
    if program is None or program.contract.bound_checks:
        return None
    if not any(tensor.dtype.startswith(("int", "uint")) for tensor in program.tensors.values()):
        return None
    asked: set[tuple[str, Value, int]] = set()
    for at, call in enumerate(program.contract.kernels):
        if call.kind != "cpp" or not _is_unconditional(program, call.name):
            continue
        failure = Failure(kind=INDEX, kernel=call.name)
        for suspect in _suspects(program, at):
            if len(asked) >= _MOST_QUESTIONS:
                return None
            asked.add((call.name, suspect.question.value, at))
            found = guilt(suspect.question, CallMemories(program, at), exactly=True)
            if found is not None and found.elements:
                return failure, chain_for(program, failure, suspect, found)
    return None


def _is_unconditional(program: Program, kernel: str) -> bool:
    body = program.bodies.get(kernel)
    text = text_of(program.case.model, body) if body is not None else None
    return text is not None and _CONDITIONAL.search(text) is None


def _suspects(program: Program, at: int) -> Iterator[Suspect]:
    flow = program.flow(program.call(at).name)
    memories = CallMemories(program, at)
    for access in dict.fromkeys(flow.accesses) if flow is not None else ():
        for index in _indices(access.at):
            table, step = table_of(program, at, access.parameter), factor(access.at, index)
            stride = number(step, memories) if step is not None else None
            if table is None or stride is None or stride < 1 or not _only_adds(access.at, index):
                continue
            limit = _reach(table, stride)
            if limit is None:
                continue
            check = Check(variable="", bound=str(limit), line=0, value=index, limit=Number(limit), mask=None, loops=())
            question = Question(value=index, limit=check.limit, mask=None, loops=access.loops, bad=out_of_range)
            yield Suspect(at=at, question=question, check=check)


def _indices(offset: Value) -> Iterator[Value]:
    """The terms of an offset that come from elements: ``tmp0`` of ``x2 + 24*tmp0``."""
    match offset:
        case Computed(operation="+", operands=operands):
            for operand in operands:
                yield from _indices(operand)
        case Computed(operation="*", operands=(left, right)) if not reads(left):
            yield from _indices(right)
        case Computed(operation="*", operands=(left, right)) if not reads(right):
            yield from _indices(left)
        case _ if reads(offset):
            yield offset


def _reach(table: Table, stride: int) -> int | None:
    """How many indices in steps of ``stride`` elements lie inside of the table's memory; None where it is not known."""
    if len(table.shape) != len(table.stride) or None in (*table.shape, *table.stride):
        return None
    pairs = [(size or 0, step or 0) for size, step in zip(table.shape, table.stride, strict=True)]
    if any(size < 1 or step < 0 for size, step in pairs):
        return None
    return sum((size - 1) * step for size, step in pairs) // stride + 1


def _only_adds(offset: Value, index: Value) -> bool:
    """Whether nothing beside the index can take anything off the offset."""
    if offset == index:
        return True
    match offset:
        case Number(value=value):
            return value >= 0
        case Variable():
            return True
        case Computed(operation="+" | "*", operands=operands):
            return all(_only_adds(one, index) for one in operands)
        case _:
            return False
