"""A check of generated code that failed in a watched program, followed back to the input by the package's sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.logs.names import CHECKED
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.run import Outcome
from aotidoctor.probes import blame, plain_run
from aotidoctor.probes.probe import History
from aotidoctor.triage.session import Session


def blame_input(session: Session, outcome: Outcome) -> Evidence | None:
    """Add the chain to what is known, where the words of the program begin one; the evidence with its id."""
    if outcome.error is None or session.case.contract is None:
        return None
    # The probe reads the end of a run that calls the package, which this program has done itself.
    ended = plain_run.read_ending(plain_run.CODE, session.case, replace(outcome, stage="run1"))
    known = len(session.findings)
    session.add(blame.read(session.case, History(findings=(ended,)), outcome))
    return next(iter(session.findings[known:]), None)


def with_blame(said: Sequence[Diagnosis], chain: Evidence | None) -> list[Diagnosis]:
    """The causes that the words name, with the input that the chain leads to."""
    if chain is None:
        return list(said)
    return [
        replace(one, subject=one.subject or chain.subject, evidence=(*one.evidence, chain.id))
        if one.cause in CHECKED
        else one
        for one in said
    ]
