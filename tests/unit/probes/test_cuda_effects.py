"""Whether what a probe for CUDA changed acted, told from what came back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.jobs import Run
from aotidoctor.probes.tool_effects import add_effect
from tests.unit.probes.outcomes import case, outcome

MEMORY = {"cuda_memory": {"free": 1 << 30, "total": 2 << 30}}


def effect(payload=None, *, request=None, **done):
    """``took_effect`` and why, of a run that changed this."""
    made = outcome(**done)
    asked = replace(made.request, payload=Run(**(payload or {})), **(request or {}))
    told = add_effect(case(device="cuda"), replace(made, request=asked))
    return told.took_effect, told.took_effect_why


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"launch_trace": {"cuLaunchKernel": 3}}, (True, "the package's calls of the driver were hooked")),
        ({"launch_trace": {}}, (True, "the package's calls of the driver were hooked")),
        ({"launch_problem": {"text": "libcuda.so.1 is missing"}}, (False, "libcuda.so.1 is missing")),
        ({"launch_problem": {"name": "no-slots"}, "launch_trace": {}}, (False, "no-slots")),
        ({}, (None, "the child exited before it reported this")),
    ],
)
def test_the_hooks_of_the_launch_trace(result, expected):
    assert effect({"launch_trace": True}, result=result) == expected


@pytest.mark.parametrize(
    ("stage", "printed", "expected"),
    [
        ("run1", "[  CPU  ][  before_launch - triton_poi_0 - arg0_1 ]:", True),
        ("load", "", None),
        ("run1", "", False),
        ("scan", "something else", False),
        ("done", "", False),
    ],
)
def test_the_value_printer(stage, printed, expected):
    took, why = effect({"unbuffered": True}, stage=stage, stdout_tail=printed)
    assert took is expected
    assert expected is not None or why == "the run ended in load, before a launch"


@pytest.mark.parametrize(("log", "expected"), [("========= COMPUTE-SANITIZER\n", True), ("", False)])
def test_a_tool_around_the_child(log, expected):
    assert effect(request={"wrapper": ("compute-sanitizer",)}, tool_output=log)[0] is expected


@pytest.mark.parametrize(
    ("problem", "expected"),
    [(None, (True, "the driver wrote a dump")), ("cuda-gdb is missing", (False, "cuda-gdb is missing"))],
)
def test_a_core_dump_of_the_gpu(problem, expected):
    assert effect(request={"gpu_core": True}, debugger_problem=problem) == expected


def test_the_variables_of_a_dump_are_judged_by_the_dump():
    asked = {"gpu_core": True, "env": {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1"}}
    assert effect(request=asked)[0] is True
    assert effect(request=asked, debugger_problem="no dump") == (False, "no dump")


@pytest.mark.parametrize(
    ("variant", "stage", "result", "expected"),
    [
        ("stream", "done", {}, None),
        ("stream", "done", MEMORY, True),
        ("capture", "done", {}, None),
        ("capture", "done", MEMORY, True),
        ("capture", "capture", MEMORY, True),
        ("capture", "run1", MEMORY, False),
        ("stream", "run1", MEMORY, True),
    ],
)
def test_a_variant_of_the_call(variant, stage, result, expected):
    """A capture follows a first plain call: a run that ended in that one has captured nothing."""
    took, why = effect({"cuda_variant": variant}, stage=stage, result=result)
    assert (took, "before a capture" in why) == (expected, expected is False)


@pytest.mark.parametrize(
    ("seen", "forked", "expected"),
    [
        ({"PYTORCH_NO_CUDA_MEMORY_CACHING": False}, False, False),
        ({"PYTORCH_NO_CUDA_MEMORY_CACHING": True}, True, False),
    ],
)
def test_a_variable_that_came_too_late_or_not_at_all(seen, forked, expected):
    asked = {"env": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}}
    assert effect(request=asked, result={"env_took_effect": seen}, forked=forked)[0] is expected
