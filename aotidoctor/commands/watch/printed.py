"""What a program printed, classified stream by stream, with its evidence numbered among that of the report.

A check of generated code that failed is followed back to the input, by the package's sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO

from aotidoctor.commands.watch.outcome import texts_of
from aotidoctor.logs import read_log
from aotidoctor.logs.diagnose import log_diagnoses, log_findings
from aotidoctor.logs.names import CHECKED, in_users_words
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.log import LogReading
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.model.watched import Watched
from aotidoctor.probes import blame, plain_run
from aotidoctor.probes.probe import History
from aotidoctor.triage.session import Session


@record
class Said:
    """One text: findings, the reading itself, and, once it is taken into a report, the causes it names."""

    evidence: tuple[Evidence, ...]
    reading: LogReading
    diagnoses: tuple[Diagnosis, ...] = ()


def read_output(watched: Watched, *, run: str = "") -> tuple[Said, ...]:
    """What each stream says; ``run`` goes before the names of the streams of a rerun."""
    prefix = f"{run} " if run else ""
    found = []
    for stream in texts_of(watched):
        reading = read_log(BytesIO(stream.text), f"{prefix}{stream.name}")
        found.append(Said(evidence=tuple(log_findings(reading)), reading=reading))
    return tuple(found)


def take(session: Session, said: Said) -> Said:
    """Add the evidence to what is known, in the words of the package; the same as it is known there."""
    evidence = said.evidence
    if session.case.contract is not None:
        named, _ = in_users_words(session.case, said.reading, evidence)
        evidence = tuple(named)
    known = len(session.findings)
    session.add(evidence)
    added = tuple(session.findings[known:])
    return replace(said, evidence=added, diagnoses=log_diagnoses(added))


def main_reading(said: Sequence[Said]) -> LogReading | None:
    """The reading that a report shows: the one that recognises most, errors' stream first."""
    return max(
        (one.reading for one in said), key=lambda reading: (len(reading.matches), len(reading.events)), default=None
    )


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
