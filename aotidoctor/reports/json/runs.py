"""Child runs as plain values for the JSON report."""

from __future__ import annotations

from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports.json.artifact import picked

_OUTPUTS_SHOWN = 64


def run(outcome: Outcome) -> dict[str, object]:
    """One child run, as plain values."""
    request, error = outcome.request, outcome.error
    return {
        "id": outcome.id,
        **picked(request, "probe purpose"),
        "argv": outcome.argv,
        "env": request.env,
        "took_effect": "unknown" if outcome.took_effect is None else outcome.took_effect,
        "took_effect_why": outcome.took_effect_why,
        **_ending(outcome.ending),
        "stage": outcome.stage,
        "stages_s": outcome.stages,
        "seconds": outcome.seconds,
        "error": picked(error, "type message traceback") if error else None,
        "warnings": outcome.warnings,
        "outputs": _outputs(outcome.result.get("outputs")),
        "applied": outcome.result.get("applied", []),
        **picked(outcome, "stdout_tail stderr_tail stdout_bytes stderr_bytes"),
        "peak_rss_bytes": outcome.peak_rss,
        "fresh_process": not outcome.forked,
    }


def _ending(ending: Ending) -> dict[str, object]:
    said: dict[str, object] = {"ending": "exited", "ending_why": "", "signal": None, "exit_code": None}
    match ending:
        case Exited(code=code, done=done):
            return said | {"exit_code": code, "ending_why": "" if done else "no done-marker"}
        case Signalled(name=name, core_dumped=core):
            return said | {"ending": "signalled", "signal": name, "ending_why": "core dumped" if core else ""}
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
