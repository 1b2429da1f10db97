"""The report as strict JSON, schema ``aotidoctor.report/1``.

NaN and Inf become strings, lone surrogates become U+FFFD, durations end in ``_s`` (a run's ``seconds`` excepted) and
times are RFC 3339 UTC. Sources, symbol lists and other long things are left out or counted. Minor versions only add.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass

from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence, FileSource, RunSource, Source
from aotidoctor.model.report import SCHEMA, Report
from aotidoctor.model.run import Ending, Exited, JsonValue, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports import json_case
from aotidoctor.reports.debug_settings import SETTINGS

_OUTPUTS_SHOWN = 64


def render(report: Report) -> str:
    """``report`` as one strict JSON document that ends in a newline."""
    return dumps(document(report))


def dumps(document: Mapping[str, object]) -> str:
    """Strict JSON of any document built from plain values, records' tuples, mappings and enums."""
    return json.dumps(clean(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, object]:
    """``report`` as plain values, before ``clean``."""
    case = report.case
    further: dict[str, object] = {"debug_settings": SETTINGS} if report.command == "env" else {}
    if report.names is not None:
        further["names"] = json_case.names(report.names)
    return {
        "schema": SCHEMA,
        "tool": {"name": "aotidoctor", "version": report.version, "argv": report.argv},
        "command": report.command,
        "started": report.started,
        "duration_s": report.seconds,
        "verdict": report.verdict,
        "stage": report.stage,
        "diagnoses": [_diagnosis(diagnosis) for diagnosis in report.diagnoses],
        "findings": [_finding(finding) for finding in report.findings],
        "not_checked": [{"code": item.code, "name": item.name, "reason": item.reason} for item in report.not_checked],
        "runs": [_run(outcome) for outcome in report.runs],
        "plan": report.plan,
        "localization": report.localization,
        "artifact": json_case.artifact(case) if case.artifact.path else None,
        "contract": json_case.contract(case.contract, whole=report.command == "inspect"),
        "inputs": json_case.inputs(case),
        "host": json_case.host(case.host),
        "signature": report.signature,
        "fingerprint": report.fingerprint,
        "log": report.log,
        "interrupted": report.interrupted,
        "out_of_time": report.out_of_time,
        "cannot_examine": report.cannot_examine,
        "internal_error": report.internal_error,
        "extra": report.extra,
        **further,
    }


def _diagnosis(diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "cause": diagnosis.cause,
        "rank": diagnosis.rank,
        "status": diagnosis.status,
        "confidence": diagnosis.confidence,
        "severity": diagnosis.severity,
        "title": diagnosis.title,
        "looked_like": diagnosis.looked_like,
        "subject": diagnosis.subject,
        "evidence": diagnosis.evidence,
        "remedy": {
            "text": diagnosis.remedy.text,
            "command": diagnosis.remedy.command,
            "verified": diagnosis.remedy.verified,
        },
        "confirmation": diagnosis.confirmation,
        "would_confirm": diagnosis.would_confirm,
        "playbook": diagnosis.playbook,
    }


def _finding(finding: Evidence) -> dict[str, object]:
    return {
        "id": finding.id,
        "code": finding.code,
        "kind": finding.kind,
        "severity": finding.severity,
        "subject": finding.subject,
        "observed": finding.observed,
        "expected": finding.expected,
        "message": finding.message,
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


def _run(outcome: Outcome) -> dict[str, object]:
    request, error = outcome.request, outcome.error
    caught = {"type": error.type, "message": error.message, "traceback": error.traceback} if error else None
    return {
        "id": outcome.id,
        "probe": request.probe,
        "purpose": request.purpose,
        "argv": outcome.argv,
        "env": request.env,
        "took_effect": "unknown" if outcome.took_effect is None else outcome.took_effect,
        "took_effect_why": outcome.took_effect_why,
        **_ending(outcome.ending),
        "stage": outcome.stage,
        "stages_s": outcome.stages,
        "seconds": outcome.seconds,
        "error": caught,
        "warnings": outcome.warnings,
        "outputs": _outputs(outcome.result.get("outputs")),
        "applied": outcome.result.get("applied", []),
        "stdout_tail": outcome.stdout_tail,
        "stderr_tail": outcome.stderr_tail,
        "stdout_bytes": outcome.stdout_bytes,
        "stderr_bytes": outcome.stderr_bytes,
        "peak_rss_bytes": outcome.peak_rss,
        "fresh_process": not outcome.forked,
    }


def _ending(ending: Ending) -> dict[str, object]:
    said: dict[str, object] = {"ending": "exited", "ending_why": "", "signal": None, "exit_code": None}
    match ending:
        case Exited(code=code, done=done):
            return said | {"exit_code": code, "ending_why": "" if done else "no done-marker"}
        case Signalled(name=name, by_us=by_us, core_dumped=core):
            whys = (by_us and "sent by aotidoctor", core and "core dumped")
            return said | {"ending": "signalled", "signal": name, "ending_why": ", ".join(why for why in whys if why)}
        case TimedOut(limit=limit):
            return said | {"ending": "timed-out", "ending_why": f"limit {limit:g} s"}
        case OutOfMemory(reason=reason):
            return said | {"ending": "out-of-memory", "ending_why": reason}
        case NotStarted(reason=reason):
            return said | {"ending": "not-started", "ending_why": reason}


def _outputs(calls: JsonValue) -> list[object]:
    """Descriptions of the last call's outputs, the first of them when there are very many."""
    if not isinstance(calls, list) or not calls or not isinstance(calls[-1], list):
        return []
    return list(calls[-1][:_OUTPUTS_SHOWN])


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
            return clean(json_case.record(value))
        case _:
            return clean(str(value))


def _nonfinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
