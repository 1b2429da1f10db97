"""Plan and reading of the native backtrace, on recorded texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.artifact import ExternNode
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Exited, Outcome, Request, Signalled, TimedOut
from aotidoctor.probes import backtrace, plain_run
from aotidoctor.probes.probe import Reuse
from aotidoctor.probes.tool_effects import add_effect
from tests.unit.probes.outcomes import case, history, outcome

DATA = Path(__file__).parents[2] / "data" / "stacks"
SEGV = Signalled(signal=11, name="SIGSEGV")
NO_CRASH = "the plain run did not crash in the package and did not hang"
WRAPPER = "data/aotinductor/model/cwezgqd4pabrajmlagjcvwb4mm4kr5qayn5rvxpju4idhnckkqbw.wrapper.cpp"
KERNEL = "data/aotinductor/model/cjbhlglf6rncmngzlxavp6sazuffppvaot2cmcdj6zoujn4a6has.kernel.cpp"


def package(*, operators: tuple[str, ...] = ("zoo::other", "zoo::misbehave")) -> Case:
    """A package with the line that the recorded stacks stand at, and two operators to choose from."""
    lines = [""] * 824 + ["aoti_torch_proxy_executor_call_function(proxy_executor, 1, 0, nullptr, 2, handles);"]
    made = case(custom_ops=operators)
    assert made.model is not None
    model = replace(
        made.model,
        wrapper_member=WRAPPER,
        wrapper_cpp="\n".join(lines),
        kernel_sources={KERNEL: "\n".join(f"line {number}" for number in range(1, 60))},
        extern_nodes=tuple(ExternNode(name=target, target=target) for target in operators),
    )
    return replace(made, model=model)


def finding(code: str, kind: str) -> Evidence:
    return Evidence(code=code, kind=kind, severity=Severity.ERROR, subject=None, observed="", expected="")


def failed(ending: Signalled | TimedOut = SEGV, stage: str = "run1", *, given: Case | None = None) -> Evidence:
    return plain_run.read(given or case(), history(), outcome(ending=ending, stage=stage))[0]


def read(name: str, *, ending: Signalled | TimedOut = SEGV, given: Case | None = None, stderr: str = "") -> Evidence:
    text = (DATA / f"{name}.txt").read_text()
    result = outcome("backtrace", ending=ending, stage="run1", debugger_output=text, stderr_tail=stderr, id="R9")
    (found,) = backtrace.read(given or package(), history(), result)
    return found


def causes(*findings: Evidence, given: Case | None = None) -> list[tuple[str, str | None, float]]:
    made = diagnose([replace(item, id=f"E{n}") for n, item in enumerate(findings)], load_playbooks(), case=given)
    return [(item.cause, item.subject, item.confidence) for item in made]


def test_a_signal_that_nothing_explains_is_repeated_under_a_debugger() -> None:
    wanted = backtrace.plan(case(), history(failed()))
    assert isinstance(wanted, Request)
    assert wanted.debugger
    assert wanted.payload == plain_run.plan(case(), history()).payload


def test_an_abort_is_repeated_unless_its_words_name_the_check() -> None:
    abort = failed(Signalled(signal=6, name="SIGABRT"))
    chain = replace(abort, code="AD-RUN-022", kind="index", severity=Severity.INFO)
    named = replace(chain, facts={"check_member": KERNEL, "check_line": 22})
    assert isinstance(backtrace.plan(case(), history(abort, chain)), Request)
    assert isinstance(backtrace.plan(case(), history(abort, named)), NotChecked)
    # What a process said before it crashed in another way explains nothing.
    assert isinstance(backtrace.plan(case(), history(failed(), named)), Request)


def test_a_hang_was_looked_at_when_it_was_stopped() -> None:
    wanted = plain_run.plan(case(), history())
    assert isinstance(wanted, Request)
    assert (wanted.stacks, wanted.debugger) == (True, False)
    assert backtrace.plan(case(), history(failed(TimedOut(limit=5)))) == Reuse(probe="plain_run")


@pytest.mark.parametrize(
    ("findings", "why"),
    [
        ([], NO_CRASH),
        ([failed(Signalled(signal=9, name="SIGKILL"))], NO_CRASH),
        ([failed(Signalled(signal=15, name="SIGTERM"))], NO_CRASH),
        ([failed(stage="setup")], NO_CRASH),
        ([failed(stage="inputs")], NO_CRASH),
        ([failed(), finding("AD-IN-002", "x")], "AD-IN-002 explains the signal"),
        ([failed(), finding("AD-HOST-010", "baked")], "AD-HOST-010 explains the signal"),
        ([failed(), finding("AD-RUN-003", "raised")], "AD-RUN-003 explains the signal"),
    ],
)
def test_not_asked(findings: list[Evidence], why: str) -> None:
    answer = backtrace.plan(case(), history(*findings))
    assert isinstance(answer, NotChecked)
    assert answer.reason == why


def test_the_same_signal_under_the_input_checks_explains_nothing() -> None:
    again = Evidence(
        code="AD-RUN-003", kind="signalled", severity=Severity.ERROR, subject=None, observed="", expected=""
    )
    assert isinstance(backtrace.plan(case(), history(failed(), again)), Request)


def test_without_gdb_the_install_line_is_told() -> None:
    bare = case()
    bare = replace(bare, host=replace(bare.host, tools={"gdb": None}))
    found = backtrace.plan(bare, history(failed()))
    assert isinstance(found, NotChecked)
    assert "apt-get install gdb" in found.reason
    assert isinstance(backtrace.plan(bare, history(failed(TimedOut(limit=5)))), Reuse)


def test_a_crash_in_an_operator() -> None:
    found = read("operator_segv")
    assert (found.kind, found.severity, found.subject) == ("crash", Severity.ERROR, "zoo::misbehave")
    assert {
        "where": "operator",
        "proved": True,
        "op": "zoo::misbehave",
        "function": "misbehave(at::Tensor const&)",
        "library": "libzoo-14bc3e2aab4b.so",
        "member": WRAPPER,
        "line": 825,
        "kernel": None,
        "signal": "SIGSEGV",
        "fault_address": "0x0",
        "fault_target": "the null page: a null pointer",
    }.items() <= found.facts.items()
    assert "wrapper.cpp:825" in found.observed


def test_a_crash_in_a_kernel_of_a_package_with_operators() -> None:
    found = read("kernel_segv")
    assert (found.kind, found.subject) == ("crash", "cpp_fused_add_mul_1")
    facts = found.facts
    assert (facts["where"], facts["op"], facts["member"], facts["line"]) == ("kernel", None, KERNEL, 31)
    assert facts["source"] == "line 31"
    assert causes(failed(given=package()), found)[0] == ("kernel-crash", "cpp_fused_add_mul_1", 0.7)


def test_the_operator_that_a_frame_proves() -> None:
    found = read("operator_heap", ending=Signalled(signal=6, name="SIGABRT"))
    assert found.facts["fault_address"] is None
    assert causes(failed(Signalled(signal=6, name="SIGABRT"), given=package()), found)[0] == (
        "custom-op-crash",
        "zoo::misbehave",
        0.9,
    )


def test_an_operator_that_is_not_seen_to_be_called_is_less_certain() -> None:
    found = read("operator_stack", given=package(operators=("zoo::misbehave",)))
    assert (found.subject, found.facts["proved"]) == ("zoo::misbehave", False)
    assert causes(failed(given=package()), found)[0] == ("custom-op-crash", "zoo::misbehave", 0.75)


def test_with_several_operators_one_that_is_not_seen_to_be_called_is_a_function() -> None:
    assert read("operator_stack").subject == "dive(char volatile*, int)"


def test_an_operator_in_python_by_its_own_frame() -> None:
    found = read("python_segv", stderr=(DATA / "python_segv.stderr.txt").read_text())
    assert (found.facts["where"], found.facts["function"]) == ("operator", "real")
    assert found.facts["file"] == "/home/me/setup_py.py:13"


@pytest.mark.parametrize(
    ("name", "where", "state", "cause"),
    [
        ("operator_spin", "operator", "runs", ("custom-op-hang", "zoo::misbehave", 0.9)),
        ("operator_pyspy", "operator", "runs", ("custom-op-hang", "zoo::misbehave", 0.9)),
        ("operator_sleep", "operator", "sleeps", ("custom-op-hang", "zoo::misbehave", 0.9)),
        ("kernel_spin", "kernel", "runs", ("model-hang", "cpp_fused_add_mul_1", 0.7)),
    ],
)
def test_a_hang(name: str, where: str, state: str, cause: tuple[str, str, float]) -> None:
    found = read(name, ending=TimedOut(limit=5))
    assert (found.kind, found.facts["where"], found.facts["state"]) == ("hang", where, state)
    assert causes(failed(TimedOut(limit=5), given=package()), found)[0] == cause


def hung(**more: str | None) -> Evidence:
    (found,) = backtrace.read(package(), history(), outcome(ending=TimedOut(limit=5), stage="run1", **more))
    return found


def test_a_hang_without_a_debugger() -> None:
    tasks = "=== tasks\nmachine=x86_64\ntid=1 state=R cpu=4.00 wchan=0 syscall=running name=python\n"
    found = hung(debugger_output=tasks, debugger_problem="gdb is not installed; apt-get install gdb")
    assert (found.kind, found.severity, found.facts["where"], found.facts["state"]) == (
        "hang",
        Severity.INFO,
        None,
        "runs",
    )


def test_python_frames_name_an_operator_in_python_without_a_debugger() -> None:
    found = hung(stderr_tail=(DATA / "python_sleep.stderr.txt").read_text(), debugger_problem="gdb is not installed")
    assert (found.facts["where"], found.facts["function"], found.severity) == ("operator", "real", Severity.ERROR)


@pytest.mark.parametrize(
    ("result", "kind", "observed"),
    [
        (outcome(ending=Exited(code=0, done=True), debugger_output="=== end\n"), "none", "did not fail"),
        (outcome(ending=SEGV, stage="run1", debugger_problem="ptrace is forbidden here"), "unavailable", "ptrace"),
        (outcome(ending=SEGV, stage="run1", debugger_output="garbage"), "unavailable", "no stack"),
    ],
)
def test_nothing_to_tell(result: Outcome, kind: str, observed: str) -> None:
    (found,) = backtrace.read(case(), history(), result)
    assert (found.kind, found.severity) == (kind, Severity.INFO)
    assert observed in found.observed


@pytest.mark.parametrize("problem", [None, "ptrace is forbidden here"])
def test_whether_the_debugger_was_there(problem: str | None) -> None:
    result = outcome("backtrace", debugger_problem=problem)
    result = replace(result, request=replace(result.request, debugger=True))
    assert add_effect(case(), result).took_effect is (problem is None)
