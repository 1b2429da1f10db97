"""Detect failures in aotidoctor's own stages of a run: examining results, reading weights, hooking calls.

A signal, an exception or a time limit there says nothing about the model. The run is repeated without the stage that
failed, and the report says that aotidoctor failed. Three faults of the model may surface there: memory that was damaged
before, the result of a custom operator, and a fault on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FAILED_HERE, NotChecked
from aotidoctor.model.jobs import Run
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Request, TimedOut
from aotidoctor.probes.payload import device_of
from aotidoctor.probes.plain_run import ending_of
from aotidoctor.probes.probe import succeeded
from aotidoctor.probes.symptoms import recognise

# The work of aotidoctor in its own stages.
DOES: Mapping[str, str] = {
    "start": "started a process",
    "import": "imported torch",
    "again": "repeated a call that had returned",
    "trace": "hooked the calls of the package",
    "constants": "read the weights",
    "scan": "looked at the results",
    "watch": "watched the values of kernels",
}
_DAMAGED = "heap-corruption"
_STARTING = ("start", "import")
# A second call that takes this many times as long as the first hangs.
_HANGS = 3.0


def own_failure(case: Case, outcome: Outcome) -> str | None:
    """The stage of aotidoctor in which the run failed; None if it succeeded or may have failed in the model."""
    if isinstance(outcome.ending, TimedOut):
        # The limit is for all stages together: a call that had returned once merely ran out of time.
        if outcome.stage in DOES:
            return outcome.stage
        first = outcome.stages.get("run1")
        if first is None or not outcome.stage.startswith("run"):
            return None
        return "again" if outcome.ending.limit - sum(outcome.stages.values()) < _HANGS * first else None
    if outcome.stage not in DOES or outcome.stage in _STARTING or succeeded(outcome):
        return None
    if isinstance(outcome.ending, NotStarted | OutOfMemory):
        return None
    custom = (
        bool(case.contract.custom_ops) if case.contract is not None else bool(case.model and case.model.extern_nodes)
    )
    if custom or device_of(case) != "cpu" or recognise(outcome.stderr_tail).name == _DAMAGED:
        return None
    return outcome.stage


def remove_stage(request: Request, stage: str) -> Request:
    """The same run without what aotidoctor does in ``stage``."""
    payload = request.payload
    if not isinstance(payload, Run) or stage in _STARTING:
        return request  # The files that were slow to read from disk are in memory now.
    if stage == "again":
        return replace(request, payload=replace(payload, calls=1))
    if stage == "trace":
        return replace(request, payload=replace(payload, trace=False))
    observe = tuple(item for item in payload.observe if item != "constants") if stage == "constants" else ()
    return replace(request, payload=replace(payload, observe=observe))


def tool_failure_note(code: str, name: str, outcome: Outcome, stage: str) -> NotChecked:
    """The note for a run that failed in a stage of aotidoctor."""
    doing = DOES.get(stage, stage)
    match outcome.ending:
        case Exited(code=status):
            error = outcome.error
            ending = f"exit status {status}"
            if error is not None and error.message.strip():
                ending = f"{error.type}: {error.message.strip().splitlines()[0][:200]}"
        case _:
            ending = ending_of(outcome)[1]
    reason = f"{FAILED_HERE}: {ending} while it {doing}; this is not a finding about the model"
    return NotChecked(code=code, name=name, reason=reason)
