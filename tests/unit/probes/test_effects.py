"""Did the setting act? Told per run, from what the child reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.jobs import Recompile, Run
from aotidoctor.model.record_json import from_json
from aotidoctor.model.run import NotStarted
from aotidoctor.probes.tool_effects import add_effect
from tests.unit.probes.outcomes import case, outcome, raised


def changed(result, *, env=None, **payload):
    kind = Recompile if {"bisect", "printer"} & payload.keys() else Run
    payload = from_json(kind, {"reference": "", "config": None, **payload})
    request = replace(result.request, env=env or {}, payload=payload)
    return replace(result, request=request)


STEPS = {"switchable": {"lowerings": [{"name": "a"}, {"name": "b"}]}}
CHECK = {"AOTI_RUNTIME_CHECK_INPUTS": "1"}


@pytest.mark.parametrize(
    ("result", "package", "expected"),
    [
        (outcome(), case(), True),
        (changed(outcome(), env=CHECK), case(), True),
        (changed(outcome(), env=CHECK), case(checks=False), False),
        (changed(outcome(stage="load"), env=CHECK), case(), False),
        (
            changed(raised("input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 3"), env=CHECK),
            case(),
            True,
        ),
        (changed(outcome(result={"memory_filled": True}), perturb=90), case(), True),
        (changed(outcome(result={"memory_filled": False}), perturb=90), case(), False),
        (changed(outcome(result=STEPS), bisect={"subsystem": "lowerings", "max": 0}), case(), True),
        (changed(outcome(result=STEPS), bisect={"subsystem": "lowerings", "max": 1}), case(), False),
        (changed(outcome(result=STEPS), bisect={"subsystem": "decomposition", "max": -1}), case(), False),
        (changed(outcome(stage="compile"), bisect={"subsystem": "lowerings", "max": 0}), case(), None),
        (changed(outcome(result=STEPS), printer=2), case(), True),
        (changed(outcome(result={"threads": 1}), threads=1), case(), True),
        (changed(outcome(result={"threads": 4}), threads=1), case(), False),
        (changed(outcome(result={"against_threads": {"threads": [4, 1]}}), against_threads=1), case(), True),
        (changed(outcome(result={"against_threads": {"threads": [4, 4]}}), against_threads=1), case(), False),
        (changed(outcome(stage="run1"), against_threads=1), case(), None),
        (changed(outcome(result={"applied": ["cast args[0]"]}), treatment=[{"op": "cast"}]), case(), True),
        (changed(outcome(), env={"TORCH_SHOW_CPP_STACKTRACES": "1"}), case(), None),
        (changed(outcome(), env={"CUDA_LAUNCH_BLOCKING": "1"}), case(), None),
        (outcome(ending=NotStarted(reason="no torch")), case(), False),
    ],
)
def test_effect(result, package, expected):
    told = add_effect(package, result)
    assert told.took_effect is expected
    assert told.took_effect_why
