"""The blame chain: from the check that failed, through the kernel's own text, back to an element of an input.

Everything is read from the package and the inputs; nothing is run. What cannot be followed is left out, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.blame.assertion import assertion_chain
from aotidoctor.localize.blame.bounds import number, origin
from aotidoctor.localize.blame.computed import Computed, Number, Value, reads
from aotidoctor.localize.blame.failing_elements import Guilt, Question, guilt, is_zero, out_of_range
from aotidoctor.localize.blame.failure import ASSERTION, DIVISION, INDEX, Failure
from aotidoctor.localize.blame.flow import Check, Division
from aotidoctor.localize.blame.memory import CallMemories
from aotidoctor.localize.blame.operator_names import NEVER_WRAP, NOT_BY, information_of, operators, source_lines
from aotidoctor.localize.blame.program import Program, program_of
from aotidoctor.localize.blame.sources import sources_of
from aotidoctor.localize.origins import origin_of
from aotidoctor.model.case import Case
from aotidoctor.model.localization import Chain
from aotidoctor.model.record import record

# Functions that count a division by zero; the operators of C++ end in a signal instead.
_COUNTED = frozenset(("remainder_integral", "mod", "floor_divide_integral"))
_SUFFIX = re.compile(r"\b(\d+)[Ll]+\b")


@record
class Suspect:
    """A check, an access or a division of one call that may have failed."""

    at: int
    question: Question
    check: Check | None = None
    function: str = ""


def chain_of(case: Case, failure: Failure) -> Chain | None:
    """The chain of ``failure``; None without a contract, or when there is nothing to say of it."""
    program = program_of(case)
    if program is None:
        return None
    if failure.kind == ASSERTION:
        return assertion_chain(program, failure)
    suspects = _suspects(program, failure)
    for suspect in suspects:
        found = guilt(suspect.question, CallMemories(program, suspect.at))
        if found is not None:
            return chain_for(program, failure, suspect, found)
    return _without_element(program, failure, suspects)


def _suspects(program: Program, failure: Failure) -> list[Suspect]:
    """In the order of execution: the first that fails is the one that ended the run."""
    kernels = _kernels(program, failure)
    calls = [at for at, call in enumerate(program.contract.kernels) if call.name in kernels]
    found = [one for at in calls for one in _of_call(program, failure, at)]
    if failure.source_line is None:
        return found
    # Several kernels may have a check of these words; where one has it on that very line, it is that one.
    exact = [one for one in found if one.check is not None and _on_line(program, one, failure.source_line)]
    return exact or found


def _on_line(program: Program, suspect: Suspect, line: int) -> bool:
    first = program.first_source_line(program.call(suspect.at).name)
    return suspect.check is not None and first is not None and suspect.check.line == first + line - 1


def _kernels(program: Program, failure: Failure) -> frozenset[str]:
    """The kernel that is named; else those whose text has the check."""
    if failure.kernel is not None:
        return frozenset((failure.kernel,))
    if failure.kind == DIVISION:
        return frozenset(program.bodies)
    said = f" {failure.variable} < {failure.bound}"
    return frozenset(one.kernel for one in program.contract.bound_checks if one.text.endswith(said))


def _of_call(program: Program, failure: Failure, at: int) -> list[Suspect]:
    flow = program.flow(program.call(at).name)
    if flow is None:
        return []
    if failure.kind == DIVISION:
        return [
            Suspect(at=at, question=_zero(one), function=one.function)
            for one in flow.divisions
            if one.function in _COUNTED
        ]
    checks = [one for one in flow.checks if one.variable == failure.variable and _same(one.bound, failure.bound)]
    exact = [one for one in checks if one.line == failure.line]
    return [Suspect(at=at, question=_outside(one), check=one) for one in exact or checks]


def _same(left: str, right: str | None) -> bool:
    """``100L`` and ``100`` are the same bound."""
    return right is not None and _SUFFIX.sub(r"\1", left) == _SUFFIX.sub(r"\1", right)


def _outside(check: Check) -> Question:
    return Question(value=check.value, limit=check.limit, mask=check.mask, loops=check.loops, bad=out_of_range)


def _zero(division: Division) -> Question:
    return Question(value=division.divisor, limit=Number(0), mask=None, loops=division.loops, bad=is_zero)


def chain_for(program: Program, failure: Failure, suspect: Suspect, found: Guilt) -> Chain:
    """The chain of a suspect that was found guilty."""
    index = failure.kind == INDEX
    empty = _empty(program, failure, suspect)
    return Chain(
        kernel=empty.kernel,
        what=f"index {found.value} of {found.limit}" if index else "division by zero",
        elements=found.elements,
        count=found.count,
        through=found.through,
        direct=_direct(found),
        index=found.value if index else None,
        bound=found.limit if index else None,
        origin=empty.origin,
        operators=empty.operators,
        where=empty.where,
        sizes=_places(program, suspect.at, found),
        most=found.position,
        member=empty.member,
        line=empty.line,
    )


def _places(program: Program, at: int, found: Guilt) -> tuple[str, ...]:
    """Where the inputs show the size that a position runs along: ``kwargs['ids'].shape[1]``."""
    arguments = program.arguments(at)
    names = {arguments[name][1] for name in found.sizes if name in arguments} | set(found.sizes)
    return tuple(
        dict.fromkeys(
            place for symbol in program.contract.symbols if symbol.name in names for place in symbol.appears_in
        )
    )


def _direct(found: Guilt) -> bool:
    """One element, and the kernel did nothing to it but count a negative one from the end."""
    if len(found.elements) != 1 or found.through:
        return False
    return found.elements[0].value in (found.value, found.value - found.limit)


def _empty(program: Program, failure: Failure, suspect: Suspect) -> Chain:
    """The chain without the element: kernel, bound, operators and source lines."""
    call = program.call(suspect.at)
    memories = CallMemories(program, suspect.at)
    flow = program.flow(call.name)
    check = suspect.check
    information = information_of(program.case.model, call)
    names = operators(call, failure.kind, information, _unlikely(suspect))
    bound = number(check.limit, memories) if check is not None else None
    body = program.bodies.get(call.name) if check is not None else None
    return Chain(
        kernel=call.name,
        what=f"index out of 0..{bound - 1}" if bound else _plainly(failure),
        bound=bound,
        origin=origin(program, suspect.at, flow, check, memories) if check is not None and flow is not None else None,
        operators=names,
        where=source_lines(information, names),
        member=body.member if body is not None else None,
        line=check.line if check is not None and body is not None else None,
    )


def _unlikely(suspect: Suspect) -> tuple[str, ...]:
    if suspect.check is not None:
        return NEVER_WRAP if _wraps(suspect.check) else ()
    return NOT_BY.get(suspect.function, ())


def _wraps(check: Check) -> bool:
    """Whether a negative index is counted from the end: ``index < 0 ? index + bound : index``."""
    match check.value:
        case Computed(operation="where", operands=(_, Computed(operation="+", operands=(inner, added)), plain)):
            return inner == plain and added == check.limit
        case _:
            return False


def _plainly(failure: Failure) -> str:
    return "division by zero" if failure.kind == DIVISION else f"index not below {failure.bound or 'its bound'}"


def _without_element(program: Program, failure: Failure, suspects: Sequence[Suspect]) -> Chain | None:
    """What is left to say when no element was found guilty: only of a single suspect, or of alike ones."""
    known = [
        replace(_empty(program, failure, one), sources=found.paths, through=found.through)
        for one in suspects
        for found in (sources_of(program, one.at, _parameters(one.question.value)),)
    ]
    if len(known) > 1:
        # Checks of the same words on several lines: which of them it was, nobody knows.
        known = list(dict.fromkeys(replace(one, member=None, line=None) for one in known))
    if len(known) == 1:
        return known[0]
    return _place(program, failure) if failure.kernel is not None else None


def _parameters(value: Value) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.parameter for one in reads(value)))


def _place(program: Program, failure: Failure) -> Chain | None:
    """Operators and source lines of the kernel that is named."""
    calls = program.calls(failure.kernel) if failure.kernel is not None else ()
    if not calls:
        return None
    made_of = origin_of(program.case, program.call(calls[0]).name)
    return Chain(
        kernel=failure.kernel,
        what=_plainly(failure),
        operators=made_of.operators,
        where=() if made_of.where is None else (made_of.where,),
    )
