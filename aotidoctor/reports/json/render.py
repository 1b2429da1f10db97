"""The report as strict JSON, schema ``aotidoctor.report/1``.

NaN and Inf become strings, lone surrogates become U+FFFD, what a terminal obeys is
escaped, durations end in ``_s`` (a run's ``seconds`` excepted) and
times are RFC 3339 UTC. Sources, symbol lists and other long things are left out or counted. Minor versions only add.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import Evidence, FileSource, RunSource, Source
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.report import SCHEMA, Report
from aotidoctor.reports.debug_settings import SETTINGS
from aotidoctor.reports.json import case as json_case
from aotidoctor.reports.json.artifact import artifact, picked, record
from aotidoctor.reports.text import escaped_json

if TYPE_CHECKING:
    from aotidoctor.model.diagnosis import Diagnosis


def render(report: Report) -> str:
    """``report`` as one strict JSON document that ends in a newline."""
    return dumps(document(report))


def dumps(document: Mapping[str, object]) -> str:
    """Strict JSON of any document built from plain values, records' tuples, mappings and enums."""
    return escaped_json(json.dumps(clean(document), indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def document(report: Report) -> dict[str, object]:
    """``report`` as plain values, before ``clean``."""
    case = report.case
    further: dict[str, object] = {"debug_settings": SETTINGS} if report.command == "env" else {}
    if report.names is not None:
        further["names"] = json_case.names(report.names)
    further |= {name: value for name, value in picked(report, "compat history").items() if value is not None}
    return {
        "schema": SCHEMA,
        "tool": {"name": "aotidoctor", "version": report.version, "argv": report.argv},
        "command": report.command,
        "started": report.started,
        "duration_s": report.seconds,
        **picked(report, "verdict stage"),
        "diagnoses": [_diagnosis(diagnosis) for diagnosis in report.diagnoses],
        "findings": [_finding(finding) for finding in report.findings],
        "not_checked": [picked(item, "code name reason moot") for item in report.not_checked],
        "runs": _runs(report),
        **picked(report, "plan localization"),
        "artifact": artifact(case) if case.artifact.path else None,
        "contract": json_case.contract(case.contract, whole=report.command == "inspect"),
        "inputs": json_case.inputs(case),
        "host": json_case.host(case.host),
        **picked(report, "signature fingerprint log interrupted out_of_time cannot_examine internal_error extra"),
        **further,
    }


def _runs(report: Report) -> list[object]:
    if not report.runs:
        return []
    from aotidoctor.reports.json.runs import run  # noqa: PLC0415 - a static command has none

    return [run(outcome) for outcome in report.runs]


def _diagnosis(diagnosis: Diagnosis) -> dict[str, object]:
    return {
        **picked(diagnosis, "cause rank status confidence severity title looked_like subject evidence"),
        "remedy": picked(diagnosis.remedy, "text command verified"),
        **picked(diagnosis, "confirmation would_confirm playbook"),
    }


def _finding(finding: Evidence) -> dict[str, object]:
    return {
        **picked(finding, "id code kind severity subject observed expected message"),
        "source": _source(finding.source),
        "facts": finding.facts,
    }


def _source(source: Source | None) -> dict[str, object] | None:
    match source:
        case FileSource(file=file, line=line, column=column):
            return {"file": file, "line": line, **({"column": column} if column is not None else {})}
        case RunSource(run=run, stream=stream, line=line):
            return {"run": run, "stream": stream, "line": line}
        case None:
            return None


def clean(value: object) -> JsonValue:
    """``value`` as strict JSON can hold it. What has no JSON form becomes its text."""
    match value:
        case None | bool():
            return value
        case enum.Enum():
            return clean(value.value)
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else _nonfinite(value)
        case Mapping():
            return {str(clean(str(key))): clean(item) for key, item in value.items()}
        case Sequence():
            return [clean(item) for item in value]
        case set() | frozenset():
            return [clean(item) for item in sorted(value, key=str)]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return clean(record(value))
        case _:
            return clean(str(value))


def _nonfinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
