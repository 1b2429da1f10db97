"""The emulation probe: when it is asked, and what is made of recorded results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.rank import confirm, rerank
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.report import Diagnosis, Remedy, Status
from aotidoctor.model.run import Request, Signalled, TimedOut
from aotidoctor.probes import emulation
from aotidoctor.triage.state import Session
from tests.unit.probes.outcomes import case, history, outcome
from tests.unit.probes.test_probes import finding

ASTRAY = {
    "kind": "out-of-bounds",
    "launch": 2,
    "kernel": "triton_poi_fused_add_0",
    "line": 12,
    "wrapper_line": 900,
    "text": "tmp0 = tl.load(in_ptr0 + (x0), xmask)",
    "grid": [3, 1, 1],
    "program": [1, 0, 0],
    "lane": 7,
    "access": "load",
    "argument": "in_ptr0",
    "buffer": "buf0",
    "offset": 40,
    "extent": 40,
    "sizes": [10, 4],
    "strides": [4, 1],
    "count": 8,
}
ASSERT = {**ASTRAY, "kind": "device-assert", "launch": 1, "message": "index out of bounds: 0 <= tmp0 < 100", "count": 3}
NO_GPU = finding("AD-HOST-003", "torch-build")


def on_cuda(*, triton=True, **options):
    packages = {"triton": "3.9.0"} if triton else {}
    given = case(device="cuda", **options)
    return replace(given, host=replace(given.host, packages=packages))


def emulated_run(*findings, launched=1, done=None, skipped=(), operators=0, lost=0, **more):
    states = ["done" if done is None or at < done else "skipped" for at in range(launched)]
    launches = [{"number": at + 1, "kernel": "k", "state": state} for at, state in enumerate(states)]
    told = {"findings": list(findings), "launches": launches, "launched": launched, "not_emulated": list(skipped)}
    told |= {"operators": operators, "lost": lost}
    return outcome(probe="emulation", result={"emulation": told}, **more)


@pytest.mark.parametrize(
    ("about", "found", "asked"),
    [
        (on_cuda(), (NO_GPU,), True),
        (on_cuda(), (), False),
        (on_cuda(emulate="always"), (), True),
        (on_cuda(emulate="never"), (NO_GPU,), False),
        (on_cuda(triton=False), (NO_GPU,), False),
        (case(), (NO_GPU,), False),
    ],
)
def test_when_it_is_asked(about, found, asked):
    plan = emulation.plan(about, history(*found))
    assert isinstance(plan, Request if asked else NotChecked)
    if asked:
        assert (plan.job, plan.env, plan.fresh) == ("emulate", {"TRITON_INTERPRET": "1"}, True)


def test_what_is_missing_is_the_readers_to_install():
    left_out = emulation.plan(on_cuda(triton=False), history(NO_GPU))
    assert (left_out.code, left_out.moot) == ("AD-RUN-040", False)
    assert "aotidoctor[emulate]" in left_out.reason


def test_an_access_names_launch_lane_and_buffer():
    (found,) = emulation.read(on_cuda(), history(), emulated_run(ASTRAY))
    assert (found.kind, found.severity, found.subject) == ("access", Severity.ERROR, "triton_poi_fused_add_0")
    wanted = {"launch": 2, "line": 12, "program": (1, 0, 0), "lane": 7, "buffer": "buf0", "offset": 40, "count": 8}
    assert {name: found.facts[name] for name in wanted} == wanted
    assert found.facts["symptom"] == "cuda-illegal-access"
    assert "program 1, lane 7: reads buf0[10, 0] of 10 rows" in found.observed


def test_what_follows_from_a_failed_assertion_is_not_told():
    found = emulation.read(on_cuda(), history(), emulated_run(ASSERT, {**ASTRAY, "launch": 1}))
    assert [item.kind for item in found if item.code == emulation.CODE] == ["assert"]
    assert (found[0].facts["variable"], found[0].facts["bound"]) == ("tmp0", "100")


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (emulated_run(), "clean"),
        (emulated_run(skipped=[{"what": "x", "why": "y", "times": 1}]), "partial"),
        (emulated_run(ending=TimedOut(limit=5), stage="run1"), "unavailable"),
        (outcome(probe="emulation", ending=Signalled(signal=9, name="SIGKILL"), stage="load"), "unavailable"),
        (outcome(probe="emulation", result={"emulation": {"problem": "no wrapper"}}), "unavailable"),
    ],
)
def test_without_a_finding(run, kind):
    (found,) = emulation.read(on_cuda(), history(), run)
    assert (found.kind, found.severity) == (kind, Severity.INFO)
    assert emulation.finished_clean(run) == (kind == "clean" or kind == "partial")


NOTHING = emulated_run(launched=0)
PARTS = [emulated_run(launched=2, done=1), emulated_run(lost=1), emulated_run(launched=0, operators=2, lost=1)]


@pytest.mark.parametrize("run", [NOTHING, *PARTS, emulated_run(ending=TimedOut(limit=5), stage="run1")])
def test_what_was_not_carried_out_is_not_healthy(run):
    (found,) = emulation.read(on_cuda(), history(), run)
    assert found.kind in ("partial", "unavailable")
    assert not emulation.finished_clean(run)
    assert [item.severity for item in emulation.revise([NO_GPU], run)] == [Severity.ERROR]


@pytest.mark.parametrize("run", [emulated_run(), emulated_run(launched=0, operators=1), emulated_run(ASTRAY, lost=1)])
def test_what_was_carried_out_or_failed_in_emulation_is_judged_by_that(run):
    assert [item.severity for item in emulation.revise([NO_GPU], run)] == [Severity.WARN]


def test_what_was_looked_at_by_addresses_alone_is_counted():
    launches = [{"number": at, "kernel": "k", "state": "done", "way": way} for at, way in enumerate(("quick", "full"))]
    skipped = [{"what": "the values", "why": "so many lanes", "times": 1}]
    told = {"findings": [], "launches": launches, "launched": 2, "not_emulated": skipped}
    (found,) = emulation.read(on_cuda(), history(), outcome(probe="emulation", result={"emulation": told}))
    assert found.kind == "partial"
    assert "2 of 2 launches" in found.observed
    assert "1 of them by their addresses alone" in found.observed


def test_a_kernel_that_failed_on_the_gpu_is_named_to_the_emulation():
    about = on_cuda(emulate="always")
    assert emulation.plan(about, history()).payload.emulate_kernels == ()
    failed = replace(finding("AD-RUN-026", "kernel"), facts={"kernel": "triton_poi_fused_add_0"})
    call = KernelCall(name="triton_poi_fused_add_0", kind="triton")
    about = replace(about, contract=replace(about.contract, kernels=(call,)))
    assert emulation.plan(about, history(failed)).payload.emulate_kernels == ("triton_poi_fused_add_0",)


def test_a_kernel_named_by_hand_must_be_one_of_the_package():
    about = on_cuda(emulate="always", emulate_kernel="triton_poi_fused_add_0")
    refused = emulation.plan(about, history())
    assert isinstance(refused, NotChecked)
    assert not refused.moot
    assert "triton_poi_fused_add_0" in refused.reason
    call = KernelCall(name="triton_poi_fused_add_0", kind="triton")
    about = replace(about, contract=replace(about.contract, kernels=(call,)))
    assert emulation.plan(about, history()).payload.emulate_kernels == ("triton_poi_fused_add_0",)


@pytest.mark.parametrize("kind", ["int32-overflow", "duplicate-index", "inf"])
def test_remarks_are_no_faults(kind):
    run = emulated_run({**ASTRAY, "kind": kind})
    assert all(item.severity is not Severity.ERROR for item in emulation.read(on_cuda(), history(), run))
    assert not emulation.is_bad(run)


def test_lanes_that_collide_as_their_index_overflows_are_no_race():
    overflow, race = {**ASTRAY, "kind": "int32-overflow"}, {**ASTRAY, "kind": "race"}
    never = {"kind": "uninitialized", "launch": None, "output": "result", "count": 3, "buffer": "buf0"}
    found = emulation.read(on_cuda(), history(), emulated_run(overflow, race, never))
    assert [(item.kind, item.severity) for item in found] == [("overflow", Severity.ERROR)]
    # The same memory by another argument: an input that is updated in place.
    through_another = {**race, "line": 13, "argument": "out_ptr0"}
    found = emulation.read(on_cuda(), history(), emulated_run(overflow, through_another))
    assert [(item.kind, item.severity) for item in found] == [("overflow", Severity.ERROR)]
    found = emulation.read(on_cuda(), history(), emulated_run(overflow, ASTRAY))
    assert [(item.kind, item.severity) for item in found] == [("overflow", Severity.ERROR)]
    assert found[0].facts["symptom"] == "cuda-illegal-access"
    # Lane 7 is the first that goes astray, lane 30 the first that overflows: the index is wrong without it.
    found = emulation.read(on_cuda(), history(), emulated_run({**overflow, "lane": 30}, ASTRAY))
    assert [(item.kind, item.severity) for item in found] == [("overflow", Severity.WARN), ("access", Severity.ERROR)]
    elsewhere = {**through_another, "buffer": "buf9"}
    found = emulation.read(on_cuda(), history(), emulated_run(overflow, elsewhere))
    assert [(item.kind, item.severity) for item in found] == [("overflow", Severity.WARN), ("race", Severity.ERROR)]


def test_a_store_without_a_bound_runs_over_its_neighbours_before_it_goes_beyond_the_buffer():
    race, beyond = {**ASTRAY, "kind": "race", "line": 9}, {**ASTRAY, "access": "store"}
    found = emulation.read(on_cuda(), history(), emulated_run(race, beyond))
    assert [item.kind for item in found] == ["access"]
    # What is read beyond it, or is elsewhere, explains no collision.
    for other in ({**beyond, "access": "load"}, {**beyond, "buffer": "buf9"}, {**beyond, "launch": 3}):
        found = emulation.read(on_cuda(), history(), emulated_run(race, other))
        assert [item.kind for item in found] == ["race", "access"]


def test_what_a_lane_astray_did_not_write_is_not_told():
    never = {**ASTRAY, "kind": "uninitialized", "launch": 3}
    found = emulation.read(on_cuda(), history(), emulated_run(ASTRAY, never))
    assert [item.kind for item in found] == ["access"]
    found = emulation.read(on_cuda(), history(), emulated_run({**never, "launch": 1}, ASTRAY))
    assert [item.kind for item in found] == ["uninitialized", "access"]


def test_what_was_left_out_is_said_and_the_missing_device_is_a_remark():
    run = emulated_run(skipped=[{"what": "a call", "why": "no kernel", "times": 2}])
    session = Session(case=on_cuda(), runner=None)
    session.add([NO_GPU, finding("AD-IN-008", "device"), finding("AD-IN-008", "type")])
    session.findings = emulation.PROBE.revise(session.findings, run)
    assert [item.reason for item in emulation.PROBE.left_out(run)] == ["not emulated: a call: no kernel (2 times)"]
    assert [item.severity for item in session.findings] == [Severity.WARN, Severity.WARN, Severity.ERROR]


def test_confirmed_in_emulation_is_a_status_of_its_own():
    def named(cause):
        remedy = Remedy(text="")
        return Diagnosis(
            cause=cause, rank=1, status=Status.SUSPECTED, confidence=0.9, title="", looked_like="", subject=None,
            evidence=(), remedy=remedy, playbook=cause,
        )  # fmt: skip

    ranked = rerank([named("a"), confirm(named("b"), "how", emulated=True), confirm(named("c"), "how")])
    assert [(item.cause, item.status.value) for item in ranked] == [
        ("c", "confirmed"),
        ("b", "confirmed-in-emulation"),
        ("a", "suspected"),
    ]
    assert not ranked[1].remedy.verified
