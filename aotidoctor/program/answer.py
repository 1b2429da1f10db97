"""What the child of ``verify`` answered: findings, and what it left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.program import findings
from aotidoctor.program.rules import RULES


def programs(outcome: Outcome | None) -> list[JsonObject]:
    """One object for each program that the child was given; empty when it never got there."""
    found = outcome.result.get("programs") if outcome is not None else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


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


def found(program: JsonObject, path: str) -> list[Evidence]:
    """The findings of one program. Raises ``KeyError`` for a record of no known rule.

    Violations of the verifier's rules know what it says itself: the one sentence that its users see.
    """
    accepted = program.get("verifier") == "passes"
    records = findings.read_records(program.get("records"))
    made = [findings.evidence(item, path, accepted=accepted) for item in records]
    said = program.get("verifier_says")
    if not isinstance(said, str):
        return made
    return [_with_sentence(item, said) for item in made]


def _with_sentence(item: Evidence, said: str) -> Evidence:
    of_torch = item.code.startswith(("VERIFY-G", "VERIFY-S"))
    return replace(item, facts={**item.facts, "verifier": said}) if of_torch else item


def left_out(program: JsonObject) -> list[NotChecked]:
    """Rules that were not judged, and violations that are too many to be listed."""
    names = {rule.code: rule.name for rule in RULES} | {"VERIFY-G": "graph", "VERIFY-S": "signature"}
    skipped, cut = program.get("skipped"), program.get("cut")
    notes = [
        NotChecked(code=f"VERIFY-{code}", name=names.get(f"VERIFY-{code}", str(code)), reason=str(reason))
        for code, reason in (skipped.items() if isinstance(skipped, dict) else ())
    ]
    for code, count in cut.items() if isinstance(cut, dict) else ():
        reason = f"{count} more of the same kind are not listed"
        notes.append(NotChecked(code=f"VERIFY-{code}", name=names[f"VERIFY-{code}"], reason=reason))
    return notes


def verifier_said(runs: Sequence[Outcome]) -> dict[str, str]:
    """``passes``, ``refuses`` or ``not-asked``, for the report; empty where no child had a program."""
    given = programs(runs[0] if runs else None)
    return {"verifier": str(given[0].get("verifier"))} if given else {}
