"""What package and program did with a call, of recorded outcomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.commands.sweep.planned_calls import plan_calls
from aotidoctor.commands.sweep.run_sweep import has_made_up_index, judge_row, package_does, program_does
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.fleet import Does, Says, SweepVerdict
from aotidoctor.model.inputs import Container, Leaf
from aotidoctor.model.run import Exited, Signalled, TimedOut
from aotidoctor.readers.inputs.live_and_generated import describe_generated
from tests.unit.probes import outcomes

CASE = outcomes.case()
CALL = ([{}],)


def compared(*leaves, **more):
    return outcomes.outcome(outputs=CALL, result={"reference": {"outputs": list(leaves), **more}})


@pytest.mark.parametrize(
    ("outcome", "does", "words"),
    [
        (outcomes.outcome(ending=TimedOut(limit=60.0)), Does.HANG, "no end within 60 s"),
        (outcomes.outcome(), Does.ERROR, "no outputs"),
        (outcomes.outcome(ending=Exited(code=3, done=True)), Does.ERROR, "no outputs"),
        (outcomes.raised("sizes of tensors\n must match"), Does.ERROR, "sizes of tensors must match"),
        (outcomes.raised("x" * 300), Does.ERROR, "x" * 200 + "… (100 more characters)"),
        (outcomes.outcome(outputs=CALL), Does.RETURNS, ""),
        (compared({"path": "result", "verdict": "agrees"}), Does.RIGHT, ""),
        (compared({"path": "result", "verdict": "differs", "max_abs_diff": 0.5}), Does.WRONG, "max |difference| 0.5"),
        (compared({"path": "result[1]", "verdict": "shape"}), Does.WRONG, "result[1]: shape"),
        (compared(missing=["result[2]"]), Does.WRONG, "result[2]: missing"),
    ],
)
def test_what_the_package_did(outcome, does, words):
    found, told = package_does(CASE, outcome)
    assert found is does
    assert told.endswith(words) if words else not told


def test_a_package_that_dies_crashed():
    dead = outcomes.outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    found, told = package_does(CASE, dead)
    assert found is Does.CRASH
    assert "SIGSEGV" in told


@pytest.mark.parametrize(
    ("told", "does", "words"),
    [
        ({"error": "IndexError: too\n large"}, Does.ERROR, "IndexError: too large"),
        ({"outputs": []}, Does.RIGHT, ""),
        ({"unavailable": "no torchvision"}, Does.UNKNOWN, "no torchvision"),
        ({}, Does.UNKNOWN, ""),
    ],
)
def test_what_the_program_did(told, does, words):
    assert program_does(outcomes.outcome(result={"reference": told})) == (does, words)


@pytest.mark.parametrize(
    ("outcome", "does", "words"),
    [
        (outcomes.raised("no kernel"), Does.ERROR, "no kernel"),
        (outcomes.outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1"), Does.ERROR, "it crashed"),
        (outcomes.outcome(), Does.UNKNOWN, ""),
    ],
)
def test_a_program_that_was_asked_alone_and_ends_without_an_answer(outcome, does, words):
    alone = replace(outcome, request=replace(outcome.request, job="reference"))
    assert program_does(alone) == (does, words)


@pytest.mark.parametrize("died", [Does.CRASH, Does.HANG])
@pytest.mark.parametrize("told", [Says.REFUSES, Says.RANGE, Says.SILENT])
def test_what_dies_without_a_program_beside_it_is_unguarded(died, told):
    assert judge_row(told, died, Does.UNKNOWN) is SweepVerdict.UNGUARDED
    assert judge_row(Says.ACCEPTS, died, Does.UNKNOWN) is SweepVerdict.FAULT


@pytest.mark.parametrize(
    ("message", "dtype", "made_up"),
    [
        ("index out of bounds: 0 <= tmp7 < 100L", "int64", True),
        ("index out of range in self", "uint8", True),
        ("index out of range in self", "float32", False),
        ("sizes of tensors must match", "int64", False),
    ],
)
def test_an_index_that_was_made_up_is_no_fault_of_the_package(message, dtype, made_up):
    given = LeafSpec(index=0, path="args[0]", kind="tensor", input_index=0, dtype=dtype, rank=1, dims=(Dim(static=4),))
    tree = Container(type="tuple", children=(Leaf(value=0),))
    none = Container(type="dict", children=())
    contract = ModelContract(model_name="m", source="", args=tree, kwargs=none, leaves=(given,), n_inputs=1)
    (point, *_) = plan_calls(contract, {}).points
    case = replace(CASE, inputs=describe_generated(contract, point.document))
    assert has_made_up_index(case, outcomes.raised(message)) is made_up
