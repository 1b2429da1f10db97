"""Outcomes of child runs as JSON, and back: what was seen on a machine becomes test data for those without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

from aotidoctor.model import record, record_json
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.report import Report
from aotidoctor.model.run import (
    ChildError,
    Ending,
    Exited,
    NotStarted,
    Outcome,
    OutOfMemory,
    Request,
    Signalled,
    TimedOut,
)
from aotidoctor.worker import JOBS

ENDINGS = {kind.__name__: kind for kind in (Exited, Signalled, TimedOut, OutOfMemory, NotStarted)}
# What is rebuilt from other parts, or of no use to a reading.
LEFT_OUT = ("request", "ending", "error", "trace")


def to_json(outcome: Outcome) -> dict[str, object]:
    """Everything but the trace of calls."""
    plain = {name: value for name, value in asdict(outcome).items() if name not in LEFT_OUT}
    return {
        **plain,
        "request": {**asdict(outcome.request), "payload": record.to_json(outcome.request.payload)},
        "ending": {"kind": type(outcome.ending).__name__, **asdict(outcome.ending)},
        "error": asdict(outcome.error) if outcome.error is not None else None,
    }


def from_json(document: Mapping[str, object]) -> Outcome:
    """The outcome again; lists become tuples where the record has tuples."""
    values = dict(document)
    ending, error = dict(values.pop("ending")), values.pop("error")
    kind: type[Ending] = ENDINGS[ending.pop("kind")]
    request = _with_tuples(Request, values.pop("request"))
    _, _, asked = JOBS[request["job"]]
    return Outcome(
        request=Request(**{**request, "payload": record_json.from_json(asked, request["payload"])}),
        ending=kind(**ending),
        error=ChildError(**error) if error is not None else None,
        **_with_tuples(Outcome, values),
    )


def _with_tuples(record: type, values: Mapping[str, object]) -> dict[str, object]:
    """JSON knows lists only: where the record's default is a tuple, it is one."""
    tuples = {one.name for one in fields(record) if one.default == ()}
    return {name: tuple(value) if name in tuples else value for name, value in values.items()}


def evidence_of(item: Evidence) -> dict[str, object]:
    """A finding as JSON."""
    return {**asdict(item), "severity": item.severity.value, "source": None}


def files_of(report: Report, about: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """File name to content: one per run, named by its order and its probe."""
    return {
        f"{number:02}-{outcome.request.probe}.json": {
            **about,
            "rung": outcome.request.probe,
            "outcome": to_json(outcome),
            "evidence": [evidence_of(item) for item in report.findings if _is_of(item, outcome)],
        }
        for number, outcome in enumerate(report.runs, start=1)
    }


def _is_of(item: Evidence, outcome: Outcome) -> bool:
    return getattr(item.source, "run", None) == outcome.id
