"""Plans and readings of the two probes for custom operators, on recorded outcomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import CustomCall, Dim, LeafSpec, PromisedResult
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.jobs import OneOperator
from aotidoctor.model.run import ChildError, Exited, OutOfMemory, Request, Signalled, TimedOut
from aotidoctor.probes import op_alone, op_inputs
from tests.unit.probes.outcomes import case, history, node, outcome, value

OP, OTHER = "zoo::misbehave", "zoo::behave"
OK = outcome(outputs=[[{"digest": "aa"}], [{"digest": "aa"}]], stages={"run1": 0.01})
DIED = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1", stages={"setup": 0.5})
HUNG = outcome(ending=TimedOut(limit=60), stage="run1", stages={"setup": 0.5, "load": 1.5})


def finding(code, kind="x", severity=Severity.ERROR, **facts):
    return Evidence(code=code, kind=kind, severity=severity, subject=None, observed="", expected="", facts=facts)


def saved(*targets, by="hooks", skipped=(), **more):
    calls = [{"index": at, "target": target, "file": f"/s/{at}.pt"} for at, target in enumerate(targets)]
    return outcome("op_inputs", result={"captured": calls, "skipped": list(skipped), "by": by}, **more)


def promised(index=0, target=OP, dtype="float32", shape=("4L", "16L"), stride=("16L", "1L"), used=True, arguments=()):
    result = PromisedResult(name=f"buf{index}", dtype=dtype, shape=shape, stride=stride, used=used)
    return CustomCall(index=index, target=target, line=1, arguments=arguments, results=(result,))


def package(*calls, **more):
    made = case(nodes=(node(target=OP), node(target=OTHER)), custom_ops=(OP, OTHER), **more)
    return replace(made, contract=replace(made.contract, custom_calls=calls))


def tensor(dtype="float32", shape=(4, 16), stride=(16, 1), **more):
    return {"path": "result", "dtype": dtype, "shape": list(shape), "stride": list(stride), "nan": 0, "inf": 0, **more}


def alone(*, target=OP, file="/s/0.pt", tags=(), loop=0, rss=(), opcheck=None, ending=None, stage="done", **call):
    """What the job ``op_alone`` tells of one call that returned."""
    facts = {"file": file, "bad": None, "arguments": [], "outputs": [tensor()], "digests": ["aa"], "again": ["aa"],
             "writes": [], "aliases": [], "clean": True, "generator": False, **call}  # fmt: skip
    result = {"calls": [facts], "returned": True, "tags": list(tags), "rss": list(rss), "opcheck": opcheck or {}}
    made = outcome(f"op_alone:{target}", result=result, ending=ending, stage=stage, id="R9")
    payload = OneOperator(target=target, files=(file,), loop=loop)
    return replace(made, request=Request(probe=f"op_alone:{target}", job="op_alone", payload=payload))


def read(result, *findings, package_=None, plain=OK, source=None, earlier=()):
    """Evidence of one outcome; ``earlier`` are other outcomes of the same probe."""
    outcomes = {"plain_run": plain, "op_inputs": source or saved(OP)}
    outcomes |= {one.request.probe: one for one in (*earlier, result)}
    known = replace(history(*findings), outcomes=outcomes)
    return list(op_alone.read(package_ or package(promised()), known, result))


def kinds(found):
    return [(item.kind, item.severity.value) for item in found]


# op_inputs


@pytest.mark.parametrize(
    ("given", "findings", "plain", "asked"),
    [
        ({}, (), OK, True),
        ({}, (), DIED, True),
        ({"nodes": ()}, (), OK, False),
        ({"nodes": (node(target="aten::mm"),)}, (), OK, False),
        ({"inputs": False}, (), OK, False),
        ({}, (), outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="load"), False),
        ({}, (finding("AD-IN-010"),), DIED, False),
        ({}, (finding("AD-RUN-010", "missing"),), DIED, False),
        ({}, (), replace(OK, stages={"run1": 30.0}), False),
        ({"rungs": ("op_inputs",)}, (), replace(OK, stages={"run1": 30.0}), True),
        ({}, (finding("AD-RUN-011", "differs"),), replace(OK, stages={"run1": 30.0}), True),
        ({"device": "cuda"}, (), OK, False),
        ({"device": "cuda"}, (finding("AD-RUN-002", "differs"),), OK, True),
    ],
)
def test_arguments_are_saved_when_it_is_cheap_or_something_is_wrong(given, findings, plain, asked):
    made = case(**{"nodes": (node(target=OP),), "custom_ops": (OP,), **given})
    assert isinstance(op_inputs.plan(made, history(*findings, plain_run=plain)), Request) is asked


def test_a_hang_is_not_waited_for_in_full_again():
    request = op_inputs.plan(package(), history(plain_run=HUNG))
    assert request.timeout == 0.5 + 1.5 + op_inputs.PATIENCE_S
    assert request.payload.targets == (OP, OTHER)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (saved(OP), "captured"),
        (saved(stage="run1", ending=Signalled(signal=11, name="SIGSEGV")), "unreached"),
        (outcome("op_inputs", result={"unavailable": "no slots"}), "unavailable"),
        (saved(skipped=({"index": 0, "target": OP, "reason": "its arguments take 900 MiB"},)), "unavailable"),
        (outcome("op_inputs", stage="load", ending=Signalled(signal=11, name="SIGSEGV")), "unavailable"),
    ],
)
def test_what_was_saved_is_a_note(result, kind):
    (item,) = op_inputs.read(package(), history(plain_run=OK), result)
    assert (item.kind, item.severity) == (kind, Severity.INFO)


# op_alone: the plan


def test_one_child_per_operator_with_all_its_calls():
    asked = op_alone.plan(package(), history(plain_run=OK, op_inputs=saved(OTHER, OP, OTHER)))
    assert [one.payload.target for one in asked] == [OTHER, OP]
    assert asked[0].payload.files == ("/s/0.pt", "/s/2.pt")
    assert {one.payload.loop for one in asked} == {0}


def test_where_it_died_the_operator_reached_last_comes_first():
    asked = op_alone.plan(package(), history(plain_run=DIED, op_inputs=saved(OTHER, OP)))
    assert [one.payload.target for one in asked] == [OP, OTHER]


def test_only_the_operator_reached_last_can_be_what_hangs():
    asked = op_alone.plan(package(), history(plain_run=HUNG, op_inputs=saved(OTHER, OP)))
    assert [one.payload.target for one in asked] == [OP]
    assert asked[0].timeout == 0.5 + 1.5 + op_inputs.PATIENCE_S


def test_what_is_left_out_is_told():
    many = [f"zoo::op{at}" for at in range(10)]
    source = saved(*many, skipped=({"index": 10, "target": OP, "reason": "too big"},))
    asked = op_alone.plan(package(), history(plain_run=OK, op_inputs=source))
    left = [one for one in asked if isinstance(one, NotChecked)]
    assert len(asked) - len(left) == op_alone.MOST_OPERATORS
    assert [one.name for one in left] == ["op_alone:zoo::op8", "op_alone:zoo::op9", f"op_alone:{OP}"]
    assert isinstance(op_alone.plan(package(), history(plain_run=OK)), NotChecked)


@pytest.mark.parametrize(
    ("call", "fake"),
    [
        (promised(), False),
        (promised(dtype=None), True),
        (promised(shape=None, stride=None), True),
        (promised(dtype=None, used=False), False),
        (promised(shape=("u0",), stride=("1L",)), False),
    ],
)
def test_the_fake_kernel_is_asked_where_the_package_is_silent(call, fake):
    (request,) = op_alone.plan(package(call), history(plain_run=OK, op_inputs=saved(OP)))
    assert (request.payload.fake, request.payload.opcheck) == (fake, False)


@pytest.mark.parametrize(
    ("sign", "loop", "opcheck"),
    [
        (finding("AD-RUN-008", "grows"), True, False),
        (finding("AD-RUN-001", "signalled", symptom="heap-corruption", stage="run1"), True, True),
        (finding("AD-RUN-001", "signalled", stage="run2"), True, True),
        (finding("AD-RUN-001", "signalled", stage="run1"), False, True),
        (finding("AD-RUN-011", "differs"), False, True),
        (finding("AD-RUN-001", "raised", stage="run1"), False, False),
    ],
)
def test_signs_decide_how_long_it_is_looked_at(sign, loop, opcheck):
    (request,) = op_alone.plan(package(promised()), history(sign, plain_run=OK, op_inputs=saved(OP)))
    assert (bool(request.payload.loop), request.payload.opcheck) == (loop, opcheck)


# op_alone: how it ended

NO_TENSOR = "Unable to cast 3.0 to Tensor"
NO_MEMORY = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4503599627370496 bytes."


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"ending": Signalled(signal=11, name="SIGSEGV"), "stage": "run1"}, "signalled"),
        ({"ending": Signalled(signal=6, name="SIGABRT"), "stage": "loop"}, "signalled"),
        ({"ending": Signalled(signal=9, name="SIGKILL"), "stage": "run1"}, "killed"),
        ({"ending": Signalled(signal=15, name="SIGTERM"), "stage": "run1"}, "killed"),
        ({"ending": Exited(code=0, done=False), "stage": "run1"}, "exited"),
        ({"ending": TimedOut(limit=5), "stage": "run1"}, "timed-out"),
        ({"ending": OutOfMemory(reason="cgroup"), "stage": "run1"}, "out-of-memory"),
        ({"ending": Signalled(signal=11, name="SIGSEGV"), "stage": "look"}, "bad-return"),
        ({"error": ChildError(type="KeyError", message="'vocab'"), "stage": "run1"}, "raised"),
        ({"error": ChildError(type="RuntimeError", message=NO_TENSOR), "stage": "run1"}, "bad-return"),
        ({"error": ChildError(type="RuntimeError", message=NO_MEMORY), "stage": "run1"}, "out-of-memory"),
    ],
)
@pytest.mark.parametrize("failed", [True, False])
def test_an_operator_that_ends_alone(changes, kind, failed):
    """It is the culprit where the package failed, and only worth a warning where it did not."""
    end = {"ending": Exited(code=1, done=True), "error": None, **changes}
    result = replace(alone(), **end, result={})
    findings = (finding("AD-RUN-001", "signalled", stage="run1"),) if failed else ()
    (item,) = read(result, *findings, plain=DIED if failed else OK)
    assert kinds([item]) == [(kind, "error" if failed else "warn")]
    assert (item.subject, item.facts["stage"]) == (OP, changes["stage"])


def test_a_run_that_never_came_to_the_operator_says_nothing_of_it():
    result = replace(alone(), result={}, ending=Signalled(signal=9, name="SIGKILL"), stage="setup")
    assert kinds(read(result)) == [("unavailable", "info")]


def test_an_end_in_the_fake_kernel_is_no_end_of_the_operator():
    result = alone(ending=Signalled(signal=11, name="SIGSEGV"), stage="fake")
    assert kinds(read(result))[0] == ("ok", "info")


# op_alone: what it did


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (tensor("float64"), "dtype"),
        (tensor(shape=(2, 16)), "shape"),
        (tensor(shape=(4, 16, 1)), "shape"),
        (tensor(stride=(1, 4)), "stride"),
    ],
)
def test_a_result_that_is_not_what_the_package_was_compiled_for(given, what):
    (item,) = read(alone(outputs=[given]))
    assert kinds([item]) == [("fake-kernel", "error")]
    assert (item.subject, item.facts["what"], item.facts["promised_by"]) == (OP, what, "package")


def test_results_are_counted():
    (item,) = read(alone(outputs=[tensor(), tensor()]))
    assert (item.kind, item.facts["what"]) == ("fake-kernel", "count")


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (promised(shape=("4L", "1L"), stride=("1L", "1L")), tensor(shape=(4, 1), stride=(1, 7))),
        (promised(shape=("0L", "16L")), tensor(shape=(0, 16), stride=(1, 1))),
        (promised(shape=("u0",), stride=("1L",)), tensor(shape=(37,), stride=(1,))),
        (promised(used=False), tensor("float64")),
        (promised(dtype=None, shape=None, stride=None), tensor("float64")),
    ],
)
def test_what_nothing_relies_on_may_be_anything(call, given):
    assert kinds(read(alone(outputs=[given]), package_=package(call)))[0] == ("ok", "info")


def test_symbols_are_read_off_the_inputs_of_this_run():
    made = package(promised(shape=("s0", "16L")))
    leaf = LeafSpec(index=0, path="args[0]", kind="tensor", input_index=0, dims=(Dim(expr=parse_expr("s0")),))
    made = replace(made, contract=replace(made.contract, leaves=(leaf,)))
    plain = replace(OK, result={**OK.result, "inputs": [value(path="args[0]", shape=[4])]})
    assert kinds(read(alone(), package_=made, plain=plain))[0] == ("ok", "info")
    seven = replace(plain, result={**OK.result, "inputs": [value(path="args[0]", shape=[7])]})
    assert kinds(read(alone(), package_=made, plain=seven)) == [("fake-kernel", "error")]


def test_the_fake_kernel_speaks_where_the_package_is_silent():
    (item,) = read(alone(fake=[tensor("float16")]), package_=package(promised(dtype=None)))
    assert (item.kind, item.facts["what"], item.facts["promised_by"]) == ("fake-kernel", "dtype", "fake kernel")


def test_the_package_decides_against_a_fake_kernel_that_was_changed_since():
    found = read(alone(fake=[tensor("float16")]))
    assert kinds(found)[0] == ("fake-differs", "info")


def test_an_operator_that_was_changed_together_with_its_fake_kernel():
    (item,) = read(alone(outputs=[tensor("float64")], fake=[tensor("float64")]))
    assert (item.kind, item.facts["fake_agrees"]) == ("fake-kernel", True)


def test_arguments_from_the_exported_program_may_be_laid_out_otherwise():
    found = read(alone(outputs=[tensor(stride=(1, 4))]), source=saved(OP, by="reference"))
    assert kinds(found)[0] == ("ok", "info")


def test_an_operator_that_is_fed_a_broken_promise_is_not_held_to_its_own():
    broken = promised(target=OTHER).results[0]
    fed = package(promised(arguments=(broken,)))
    wide = alone(outputs=[tensor("float64")], arguments=[tensor("float64")])
    assert kinds(read(wide, package_=fed))[0] == ("ok", "info")
    assert kinds(read(alone(outputs=[tensor("float64")], arguments=[tensor()]), package_=fed))[0][0] == "fake-kernel"


HARM = finding("AD-RUN-011", "differs")


@pytest.mark.parametrize(
    ("call", "findings", "kind", "severity"),
    [
        ({"bad": "an undefined tensor (None)", "outputs": []}, (), "bad-return", "warn"),
        ({"bad": "an undefined tensor (None)", "outputs": []}, (HARM,), "bad-return", "error"),
        ({"writes": ["x"]}, (), "mutates", "error"),
        ({"aliases": [["result", "x"]]}, (), "aliases", "warn"),
        ({"aliases": [["result", "x"]]}, (HARM,), "aliases", "error"),
        ({"again": ["bb"]}, (), "random", "info"),
        ({"again": ["bb"]}, (finding("AD-RUN-002", "differs"),), "random", "error"),
        ({"outputs": [tensor(nan=3)]}, (), "nan", "info"),
        ({"outputs": [tensor(nan=3)]}, (finding("AD-RUN-005", "nan-output", clean=True),), "nan", "error"),
        ({"outputs": [tensor(inf=3)]}, (finding("AD-RUN-005", "inf-output", Severity.WARN),), "nan", "warn"),
        ({"outputs": [tensor(nan=3)]}, (finding("AD-RUN-005", "nan-output", clean=False),), "nan", "info"),
        ({"outputs": [tensor(nan=3)], "clean": False}, (), "ok", "info"),
        ({"rss": [at << 20 for at in range(24)]}, (), "grows", "error"),
        ({"rss": [1 << 20] * 24}, (), "ok", "info"),
        ({"opcheck": {"test_schema": "Argument x was mutated"}}, (), "opcheck", "warn"),
        ({"opcheck": {"test_schema": "SUCCESS"}}, (), "ok", "info"),
        ({"opcheck": {"test_schema": "Argument x was mutated"}, "writes": ["x"]}, (), "mutates", "error"),
    ],
)
def test_what_it_did_and_how_bad_that_is(call, findings, kind, severity):
    found = read(alone(**call), *findings)
    assert kinds(found)[0] == (kind, severity)
    assert [item.kind for item in found if item.kind not in (kind, "cleared")] == []


@pytest.mark.parametrize("how", [{"tags": ("nondeterministic_seeded",)}, {"generator": True}])
def test_randomness_by_design_is_said(how):
    assert read(alone(again=["bb"], **how))[0].facts["by_design"] is True
    assert read(alone(again=["bb"]))[0].facts["by_design"] is False


# cleared

SOURCE = saved(OP, OTHER)
FINE = finding("AD-RUN-015", "ok", Severity.INFO)


def cleared(result, *findings, **more):
    return "cleared" in [item.kind for item in read(result, *findings, **more)]


def test_operators_are_cleared_after_the_last_and_only_if_none_did_anything_wrong():
    first, last = alone(), alone(target=OTHER, file="/s/1.pt")
    assert not cleared(first, source=SOURCE)
    assert cleared(last, FINE, source=SOURCE, earlier=(first,))
    assert not cleared(last, finding("AD-RUN-015", "mutates"), source=SOURCE, earlier=(first,))
    assert not cleared(last, finding("AD-RUN-015", "unavailable", Severity.INFO), source=SOURCE, earlier=(first,))


def test_operators_that_were_not_saved_are_not_cleared():
    assert not cleared(alone(), source=saved(OP, skipped=({"index": 1, "target": OTHER, "reason": "too big"},)))


@pytest.mark.parametrize(
    ("sign", "expected"),
    [
        (finding("AD-RUN-001", "signalled", stage="run1"), True),
        (finding("AD-RUN-001", "signalled", stage="run1", symptom="heap-corruption"), False),
        (finding("AD-RUN-001", "signalled", stage="run2"), False),
        (finding("AD-RUN-002", "flaky"), False),
        (finding("AD-RUN-024", "custom"), False),
        (finding("AD-RUN-008", "grows"), True),
    ],
)
def test_calls_that_went_well_clear_nobody_of_a_damaged_heap(sign, expected):
    assert cleared(alone(rss=[1 << 20] * 24), sign, plain=DIED) is expected
