"""Detect failures in aotidoctor's own stages of a run: examining results, reading weights, hooking calls.

A signal, an exception or a time limit there says nothing about the model. The run is repeated without the stage that
failed, and the report says that aotidoctor failed. Three things surface late and are the model's all the same: memory
that was damaged before, the result of a custom operator, and a fault on a GPU.
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

# What aotidoctor does in its own stages.
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
# A second call that takes so many times as long as the first hangs.
_HANGS = 3.0


def own_failure(case: Case, outcome: Outcome) -> str | None:
    """The stage of ours in which the run ended badly; None where it may be the model's end, or was a good one."""
    if isinstance(outcome.ending, TimedOut):
        # Our limit is for all stages together: a call that had returned once was only not given enough of it.
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


def without_stage(request: Request, stage: str) -> Request:
    """The same run without what aotidoctor does in ``stage``."""
    payload = request.payload
    if not isinstance(payload, Run) or stage in _STARTING:
        return request  # What was slow to be read from disk is in memory now.
    if stage == "again":
        return replace(request, payload=replace(payload, calls=1))
    if stage == "trace":
        return replace(request, payload=replace(payload, trace=False))
    left = tuple(item for item in payload.observe if item != "constants") if stage == "constants" else ()
    return replace(request, payload=replace(payload, observe=left))


def tool_failure_note(code: str, name: str, outcome: Outcome, stage: str) -> NotChecked:
    """What to tell of a run that ended badly in a stage of ours."""
    doing = DOES.get(stage, stage)
    reason = f"{FAILED_HERE}: {_ending(outcome)} while it {doing}; this is not a finding about the model"
    return NotChecked(code=code, name=name, reason=reason)


def _ending(outcome: Outcome) -> str:
    match outcome.ending:
        case Exited(code=code):
            error = outcome.error
            return (
                f"{error.type}: {error.message.strip().splitlines()[0][:200]}"
                if error is not None and error.message.strip()
                else f"exit status {code}"
            )
        case _:
            return ending_of(outcome)[1]
