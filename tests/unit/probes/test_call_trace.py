"""The call trace: who was under way, on recorded traces."""

from __future__ import annotations

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.run import CallKind, ChildError, Exited, Request, Signalled, TimedOut, Trace, TracedCall
from aotidoctor.probes import call_trace
from tests.unit.probes.outcomes import case, history, node, outcome
from tests.unit.probes.test_probes import finding

SEGV = Signalled(signal=11, name="SIGSEGV")
PROXY = "aoti_torch_proxy_executor_call_function"


def calls(*symbols):
    """Calls a microsecond apart; a tuple gives the second argument."""
    named = [one if isinstance(one, tuple) else (one, 0) for one in symbols]
    return tuple(TracedCall(symbol=name, argument=number, at=at * 1e-6) for at, (name, number) in enumerate(named))


def traced(*symbols, ending=SEGV, marks=(0,), **more):
    made = calls(*symbols)
    return outcome(
        "call_trace", ending=ending, stage=more.pop("stage", "run1"),
        trace=Trace(calls=made, total=len(made), slots=9, marks=marks), **more,
    )  # fmt: skip


def read(done, about=None):
    found = call_trace.read(about or case(nodes=(node("zoo::first"), node("zoo::second"))), history(), done)
    assert len(found) == 1
    return found[0]


def test_the_last_call_is_named_with_the_one_before_it():
    item = read(traced("aoti_torch_empty_strided", "cpp_fused_add_0", "aoti_torch_get_data_ptr", "cpp_fused_mul_1"))
    assert (item.kind, item.subject, item.severity) == ("kernel", "cpp_fused_mul_1", Severity.ERROR)
    assert item.facts["after"] == "cpp_fused_add_0"
    assert item.facts["ending"] == "signalled"
    assert item.facts["operators"] == ("aten.mul",)


def test_of_several_operators_the_one_under_way_is_named():
    item = read(traced((PROXY, 0), "cpp_fused_add_0", (PROXY, 1)))
    assert (item.kind, item.subject) == ("custom", "zoo::second")


def test_an_operator_of_torch_without_a_c_function_is_nobody_s_custom_one():
    error = ChildError(type="RuntimeError", message="linalg.cholesky: the input is not positive-definite")
    done = traced((PROXY, 0), ending=Exited(code=1, done=True), error=error)
    item = read(done, case(nodes=(node("aten::_linalg_check_errors"),)))
    assert (item.kind, item.subject) == ("extern", "aten::_linalg_check_errors")
    raised = finding("AD-RUN-001", "raised", symptom="other")
    (found,) = diagnose([item, raised], load_playbooks())
    assert (found.cause, found.subject) == ("operator-refused", item.subject)
    few = finding("AD-IN-017", "low", Severity.WARN)
    assert [one.cause for one in diagnose([few, item, raised], load_playbooks())] == ["input-range"]


def test_a_kernel_that_raises_in_the_words_of_the_model_is_an_assertion_of_the_model():
    error = ChildError(type="RuntimeError", message="probabilities must sum to one")
    item = read(traced("cpp_fused__assert_async_lt_0", ending=Exited(code=1, done=True), error=error))
    (found,) = diagnose([item, finding("AD-RUN-001", "raised", symptom="other")], load_playbooks())
    assert found.cause == "runtime-assert"
    assert item.facts["operators"] == ("aten._assert_async", "aten.lt")


def test_an_unknown_node_is_not_made_up():
    assert read(traced((PROXY, 7))).subject == PROXY


def test_an_exception_gives_tensors_back_on_its_way_out():
    item = read(
        traced(
            (PROXY, 0),
            "aoti_torch_delete_tensor_object",
            "aoti_torch_delete_tensor_object",
            ending=Exited(code=1, done=True),
            error=ChildError(type="RuntimeError", message="UNKNOWN"),
        )
    )
    assert (item.kind, item.subject, item.facts["ending"]) == ("custom", "zoo::first", "raised")


def test_a_crash_while_a_tensor_is_given_back_blames_nobody():
    item = read(traced("cpp_fused_add_0", "aoti_torch_delete_tensor_object"))
    assert (item.kind, item.severity) == ("runtime", Severity.INFO)
    assert item.facts["after"] == "cpp_fused_add_0"


def test_who_finds_a_damaged_heap_has_not_damaged_it():
    said = {"ending": Signalled(signal=6, name="SIGABRT"), "stderr_tail": "free(): invalid next size (normal)\n"}
    item = read(traced((PROXY, 0), "aoti_torch_cpu_mm_out", **said))
    assert (item.kind, item.severity) == ("runtime", Severity.INFO)
    assert read(traced("aoti_torch_cpu_mm_out", (PROXY, 1), **said)).kind == "custom"


def test_the_call_of_the_model_is_counted():
    item = read(traced("cpp_fused_add_0", "cpp_fused_add_0", marks=(0, 1), stage="run2"))
    assert item.facts["run"] == 2
    assert item.facts["after"] is None


def test_a_hang_and_an_exit():
    assert read(traced((PROXY, 0), ending=TimedOut(limit=5))).facts["ending"] == "timed-out"
    assert read(traced((PROXY, 0), ending=Exited(code=0, done=False))).facts["ending"] == "exited"


@pytest.mark.parametrize(
    ("done", "kind"),
    [
        (outcome("call_trace", trace=Trace(calls=calls("cpp_fused_add_0"), total=1, slots=3, marks=(0,))), "survived"),
        (outcome("call_trace", ending=SEGV, stage="run1", trace=Trace(problem="no slots")), "unavailable"),
        (outcome("call_trace", ending=SEGV, stage="load"), "unavailable"),
        (outcome("call_trace", ending=SEGV, stage="run1", trace=Trace(slots=3, marks=(0,))), "not-entered"),
    ],
)
def test_what_tells_nothing_is_a_note(done, kind):
    item = read(done)
    assert (item.kind, item.severity) == (kind, Severity.INFO)


def plan(plain, findings=(), **options):
    return call_trace.plan(case(**options), history(*findings, plain_run=plain))


def test_asked_for_a_crash_in_the_call():
    request = plan(outcome(ending=SEGV, stage="run1"))
    assert isinstance(request, Request)
    assert request.payload.trace is True
    assert request.payload.calls == 1


def test_a_later_crash_is_traced_over_two_calls():
    request = plan(outcome(ending=SEGV, stage="run2"))
    assert isinstance(request, Request)
    assert request.payload.calls == 2


@pytest.mark.parametrize(
    ("plain", "findings", "why"),
    [
        (outcome(), (), "the call returned"),
        (outcome(ending=SEGV, stage="load"), (), "it failed in load, before any compiled call"),
        (outcome(ending=Signalled(signal=9, name="SIGKILL"), stage="run1"), (), "SIGKILL comes from outside"),
        (outcome(ending=SEGV, stage="run1"), (finding("AD-IN-013", "static"),), "a static finding already explains it"),
    ],
)
def test_not_asked(plain, findings, why):
    answer = plan(plain, findings)
    assert isinstance(answer, NotChecked)
    assert answer.reason.startswith(why)


def test_localize_asks_anyway():
    assert isinstance(plan(outcome(), localize=True), Request)


def test_kinds_of_calls():
    wanted = {
        "cpp_fused_add_0": CallKind.KERNEL,
        "aoti_torch_cpu_addmm_out": CallKind.EXTERN,
        "aoti_torch_mm_out": CallKind.EXTERN,
        PROXY: CallKind.CUSTOM,
        "aoti_torch_get_data_ptr": CallKind.RUNTIME,
        "cuLaunchKernel": CallKind.LAUNCH,
    }
    assert {name: TracedCall(symbol=name, argument=0, at=0.0).kind for name in wanted} == wanted


def test_calls_of_one_call_of_the_model_when_the_ring_was_overwritten():
    made = calls("c", "d", "e")
    trace = Trace(calls=made, total=5, slots=1, marks=(0, 3))
    assert [call.symbol for call in trace.of_run(1)] == ["c"]
    assert [call.symbol for call in trace.of_run(2)] == ["d", "e"]
    assert trace.of_run(3) == ()
