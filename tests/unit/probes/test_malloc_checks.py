"""Heap checks: when they are asked for, and what the end of such a run says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.evidence import Evidence, NotChecked, RunSource, Severity
from aotidoctor.model.jobs import Job, Run
from aotidoctor.model.run import Exited, Request, Signalled, Trace, TracedCall
from aotidoctor.probes import malloc_checks
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.tool_effects import add_effect
from tests.unit.probes.outcomes import case, history, node, outcome

ABORT = Signalled(signal=6, name="SIGABRT")
SEGV = Signalled(signal=11, name="SIGSEGV")
WORDS = "double free or corruption (out)\n"
OP = "aoti_torch_proxy_executor_call_function"
DELETE = "aoti_torch_delete_tensor_object"
CHECKED = {"heap_checks": True, "env_took_effect": {"MALLOC_CHECK_": True}}
UNSUSPICIOUS = "no run ended in a way that a damaged heap explains"


def glibc(version="2.36", *, preload=None, system="Linux", **more):
    made = case(**more)
    environment = {"LD_PRELOAD": preload} if preload else {}
    return replace(made, host=replace(made.host, glibc=version, system=system, environment=environment))


def traced(*symbols, argument=0):
    calls = tuple(TracedCall(symbol=symbol, argument=argument, at=float(at)) for at, symbol in enumerate(symbols))
    return Trace(calls=calls, total=len(calls))


def after(package, *runs, extra=()):
    """The history of these runs, each read as the plain run is."""
    found = [read_ending("AD-RUN-001", package, run) for run in runs]
    return history(*found, *extra, **{run.request.probe: run for run in runs})


def died(stage="run2", ending=ABORT, words=WORDS, **more):
    return outcome(ending=ending, stage=stage, stderr_tail=words, **more)


def checks(stage="run1", ending=ABORT, words="free(): invalid pointer\n", **more):
    calls = int(stage[3:]) if stage.startswith("run") else 2 if stage == "scan" else 0
    stages = {f"run{at}": 0.1 for at in range(1, calls)}
    return outcome("malloc_checks", ending=ending, stage=stage, stages=stages, stderr_tail=words, id="R9", **more)


PLAIN = died(stages={"run1": 0.1})


def one(package, plain, result, **outcomes):
    before = after(package, plain)
    found = malloc_checks.read(package, replace(before, outcomes={**before.outcomes, **outcomes}), result)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("plain", "asked"),
    [
        (died(), True),
        (died("run1"), True),
        (died("unload", SEGV, ""), True),
        (died("scan", SEGV, ""), True),
        (died("after_load"), True),
        (died("run1", SEGV, ""), False),
        (died("load", SEGV, ""), False),
        (died("run2", Signalled(signal=9, name="SIGKILL"), ""), False),
        (outcome(outputs=[[{}]]), False),
    ],
)
def test_asked_when_the_end_smells_of_a_damaged_heap(plain, asked):
    package = glibc()
    answer = malloc_checks.plan(package, after(package, plain))
    assert isinstance(answer, Request) if asked else answer.reason == UNSUSPICIOUS


def test_asked_when_the_crash_comes_and_goes():
    package = glibc()
    second = replace(died("run1", SEGV, ""), id="R2", request=Request(probe="again", job="run", payload=Job()))
    flaky = replace(read_ending("AD-RUN-002", package, second), kind="flaky")
    before = history(flaky, plain_run=outcome(outputs=[[{}]]), again=second)
    assert isinstance(malloc_checks.plan(package, before), Request)


@pytest.mark.parametrize(
    ("frame", "asked"),
    [
        ("#0  0x00007f12 in _int_malloc (av=0x7f, bytes=64) at ./malloc/malloc.c:4060", True),
        ("#0  unlink_chunk (p=0x41, av=0x7f) at ./malloc/malloc.c:1628", True),
        ("#1  0x00007f12 in __GI___libc_free (mem=0x41) at ./malloc/malloc.c:3391", True),
        ("#0  cpp_fused_add_0 (in_ptr0=0x0) at kernel.cpp:48", False),
        ("#9  0x00007f12 in malloc (bytes=64)", False),
    ],
)
def test_asked_when_it_died_inside_the_allocator(frame, asked):
    package = glibc()
    plain = died("run1", SEGV, "")
    before = after(package, plain)
    stack = outcome("backtrace", ending=SEGV, stage="run1", debugger_output=f"Thread 1\n{frame}\n")
    answer = malloc_checks.plan(package, replace(before, outcomes={**before.outcomes, "backtrace": stack}))
    assert isinstance(answer, Request) if asked else answer.reason == UNSUSPICIOUS


def test_repeats_as_many_calls_as_it_took():
    package = glibc()
    request = Request(probe="growth", job="run", payload=Run(calls=40, observe=("rss",)))
    late = replace(died("run17"), id="R2", request=request)
    found = read_ending("AD-RUN-008", package, late)
    answer = malloc_checks.plan(package, history(found, plain_run=outcome(outputs=[[{}]]), growth=late))
    assert (answer.payload.calls, answer.payload.observe) == (40, ("rss",))


@pytest.mark.parametrize(
    ("package", "environment"),
    [
        (glibc("2.36"), {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165", "LD_PRELOAD": "libc_malloc_debug.so.0"}),
        (glibc("2.31"), {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}),
        (
            glibc("2.36", preload="libx.so"),
            {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165", "LD_PRELOAD": "libc_malloc_debug.so.0:libx.so"},
        ),
    ],
)
def test_environment_fits_the_c_library(package, environment):
    request = malloc_checks.plan(package, after(package, PLAIN))
    assert (request.env, request.fresh, request.payload.trace) == (environment, True, True)


@pytest.mark.parametrize(
    ("package", "word"),
    [
        (glibc(None), "glibc"),
        (glibc(system="Darwin"), "glibc"),
        (glibc(preload="/usr/lib/libjemalloc.so.2"), "jemalloc"),
        (glibc(device="cuda"), "device memory"),
    ],
)
def test_where_there_are_no_checks_the_reason_is_told(package, word):
    answer = malloc_checks.plan(package, after(package, PLAIN))
    assert isinstance(answer, NotChecked)
    assert word in answer.reason


@pytest.mark.parametrize("code", ["AD-IN-010", "AD-LOAD-005", "AD-HOST-010"])
def test_not_asked_when_a_static_finding_explains_it(code):
    package = glibc()
    known = Evidence(code=code, kind="x", severity=Severity.ERROR, subject=None, observed="", expected="")
    answer = malloc_checks.plan(package, after(package, PLAIN, extra=(known,)))
    assert isinstance(answer, NotChecked)
    assert answer.reason == "a static finding already explains the crash"


def test_not_asked_when_an_operator_dies_alone():
    package = glibc()
    alone = Evidence(
        code="AD-RUN-015", kind="signalled", severity=Severity.ERROR, subject=None, observed="", expected=""
    )
    answer = malloc_checks.plan(package, after(package, PLAIN, extra=(alone,)))
    assert isinstance(answer, NotChecked)
    assert answer.reason == "an operator crashes when it is called alone"


def test_moved_into_the_operator():
    package = glibc(nodes=[node("a::first"), node("zoo::scale")], custom_ops=["a::first", "zoo::scale"])
    item = one(package, PLAIN, checks(trace=traced("cpp_fused_add_0", OP, argument=1)))
    assert (item.kind, item.subject, item.severity) == ("moved", "zoo::scale", Severity.ERROR)
    expected = {"stage": "run1", "plain_stage": "run2", "call_kind": "custom", "inside": True, "damage": True}
    assert expected.items() <= item.facts.items()


def test_a_buffer_that_is_freed_points_at_the_call_before():
    item = one(glibc(), PLAIN, checks(trace=traced("cpp_fused_add_0", DELETE)))
    assert (item.subject, item.facts["inside"], item.facts["call_kind"]) == ("cpp_fused_add_0", False, "kernel")


@pytest.mark.parametrize(
    ("stage", "earlier", "kind"),
    [("run1", 9, "moved"), ("run2", 3, "same"), ("run2", 9, "moved"), ("run3", 3, "later")],
)
def test_order_of_ends(stage, earlier, kind):
    trace = traced("cpp_fused_add_0", "cpp_fused_add_1", DELETE)
    call_trace = died(stages={"run1": 0.1}, trace=Trace(calls=trace.calls, total=earlier))
    assert one(glibc(), PLAIN, checks(stage, trace=trace), call_trace=call_trace).kind == kind


def test_between_two_calls_is_after_the_first():
    assert one(glibc(), PLAIN, checks("scan")).kind == "moved"
    looking = died("scan", stages={"run1": 0.1})
    assert one(glibc(), looking, checks("scan")).kind == "same"
    assert one(glibc(), looking, checks("run2")).kind == "later"


def test_death_while_weights_are_loaded():
    plain = died("run1", result={"loaded_constants": [{"name": "l.weight"}]})
    item = one(glibc(), plain, checks("after_load"))
    assert (item.kind, item.facts["stage"], item.facts["loaded_constants"]) == ("moved", "after_load", True)
    assert item.facts["damage"] is False
    assert one(glibc(), died("constants"), checks("after_load")).kind == "moved"
    assert one(glibc(), died("after_load"), checks("constants")).kind == "later"


def test_no_damage_found():
    fine = outcome("malloc_checks", outputs=[[{}]])
    assert (one(glibc(), PLAIN, fine).kind, one(glibc(), PLAIN, fine).severity) == ("heals", Severity.INFO)


def test_without_the_library_it_proves_nothing():
    result = replace(checks(result={**CHECKED, "heap_checks": False}), request=request_of(glibc()))
    told = add_effect(glibc(), result)
    assert told.took_effect is False
    assert one(glibc(), PLAIN, told).kind == "unavailable"


def request_of(package):
    return malloc_checks.plan(package, after(package, PLAIN))


@pytest.mark.parametrize(
    ("version", "result", "acted"),
    [
        ("2.36", CHECKED, True),
        ("2.31", {**CHECKED, "heap_checks": False}, True),
        ("2.31", {**CHECKED, "env_took_effect": {"MALLOC_CHECK_": False}}, False),
        ("2.36", {}, None),
    ],
)
def test_effect(version, result, acted):
    package = glibc(version)
    assert add_effect(package, replace(checks(result=result), request=request_of(package))).took_effect is acted


def test_findings_of_other_runs_do_not_count():
    package = glibc()
    other = replace(read_ending("AD-RUN-003", package, died()), source=RunSource(run="R7", stream="result"))
    plain = outcome(ending=Exited(code=1, done=False), stage="run1")
    answer = malloc_checks.plan(package, history(other, plain_run=plain))
    assert isinstance(answer, NotChecked)
    assert answer.reason == UNSUSPICIOUS
