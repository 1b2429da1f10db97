"""What the child of ``verify`` answered: findings, and what it left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.answers import told
from aotidoctor.model.answers.verified import JudgedProgram, Verified
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.program.findings import evidence
from aotidoctor.program.rules import BY_CODE, RULES


def programs(outcome: Outcome | None) -> tuple[JudgedProgram, ...]:
    """The programs that the child was given; empty when it never got there."""
    return told(Verified, outcome.result).programs if outcome is not None else ()


def why_nothing(outcome: Outcome | None) -> str:
    """Why there is no program in the answer."""
    if outcome is None:
        return "the time budget is spent"
    if outcome.error is not None:
        return f"{outcome.error.type}: {outcome.error.message}"[:500]
    return f"the child ended in stage {outcome.stage}: {_ended(outcome.ending)}"


def _ended(ending: Ending) -> str:
    match ending:
        case Signalled(name=name):
            return name
        case TimedOut(limit=limit):
            return f"no end within {limit:g} s"
        case OutOfMemory(reason=reason) | NotStarted(reason=reason):
            return reason
        case Exited(code=code):
            return f"exit {code}"


def found(program: JudgedProgram, path: str) -> list[Evidence]:
    """The findings of one program. Raises ``KeyError`` for a record of no known rule.

    Violations of the verifier's rules know what it says itself: the one sentence that its users see.
    """
    made = [evidence(item, path, accepted=program.verifier == "passes") for item in program.records]
    said = program.verifier_says
    return made if said is None else [_with_sentence(item, said) for item in made]


def _with_sentence(item: Evidence, said: str) -> Evidence:
    of_torch = BY_CODE[item.code].of_torch
    return replace(item, facts={**item.facts, "verifier": said}) if of_torch else item


def left_out(program: JudgedProgram) -> list[NotChecked]:
    """Rules that were not judged, and violations that are too many to be listed."""
    names = {rule.code: rule.name for rule in RULES} | {"VERIFY-G": "graph", "VERIFY-S": "signature"}
    too_many = {code: f"{count} more of the same kind are not listed" for code, count in program.cut.items()}
    return [
        NotChecked(code=f"VERIFY-{code}", name=names.get(f"VERIFY-{code}", code), reason=reason)
        for code, reason in (*program.skipped.items(), *too_many.items())
    ]


def verifier_said(runs: Sequence[Outcome]) -> dict[str, str]:
    """``passes``, ``refuses`` or ``not-asked``, for the report; empty where no child had a program."""
    given = programs(runs[0] if runs else None)
    return {"verifier": given[0].verifier} if given else {}
