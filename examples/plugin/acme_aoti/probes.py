"""ACME-RUN-001: does the package run under the company's strict mode?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.run import Outcome
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.probe import History, Plan, Probe, evidence, succeeded, unasked

AOTIDOCTOR_API = 1

CODE, NAME = "ACME-RUN-001", "acme_strict"


def plan(case: Case, history: History) -> Plan:
    """One run like the plain one, with a variable set; not where that failed already."""
    if not succeeded(history.outcomes.get("plain_run")):
        return unasked(CODE, NAME, "the plain run failed")
    return replace(run_request(case, NAME, "strict mode"), env={"ACME_STRICT": "1"})


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """A note that it ran, or an error."""
    good = succeeded(outcome)
    severity = Severity.INFO if good else Severity.ERROR
    said = "it ran" if good else f"it ended in {outcome.stage}"
    return [evidence(CODE, "strict", severity, outcome, observed=said, expected="it ran")]


PROBES = [
    Probe(
        code=CODE,
        name=NAME,
        asks="does it run in strict mode?",
        asked_when="the plain run ended well",
        plan=plan,
        read=read,
    )
]
