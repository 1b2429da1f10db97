"""The blame chain as evidence, and what the diagnosis makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.diagnosis.treatments import plan_treatment
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.inputs import TensorDesc, ValueStats
from aotidoctor.model.localization import Chain
from aotidoctor.model.run import Signalled
from aotidoctor.probes import blame, plain_run
from aotidoctor.probes.probe import History, Reuse
from tests.unit.localize.kernels import case_of, floats, integers, text
from tests.unit.probes.outcomes import case, history, outcome, raised

EMBEDDING = "cpp_fused__softmax_embedding_mul_0"
BUFFERED = "cpp_fused_embedding_1"


def bounds(kernel, words="tmp2 < 100L"):
    return raised(
        f"index out of bounds: 0 <= {words}\nException raised from {kernel} at /x/b.kernel.cpp:999 (most recent call first)"
    )


def ask(case, run):
    """The findings of the plain run and of the probe, with ids."""
    first = plain_run.read(case, History(), run)
    history = History(outcomes={"plain_run": run}, findings=tuple(first))
    plan = blame.plan(case, history)
    assert plan == Reuse(probe="plain_run")
    found = [*first, *blame.read(case, history, run)]
    return [replace(item, id=f"E{at}") for at, item in enumerate(found)]


def first_of(case, run):
    return diagnose(ask(case, run), load_playbooks(), case=case)[0]


def by_keyword(*ids):
    stats = ValueStats(low=min(ids), high=max(ids), nan=0, inf=0, zeros=ids.count(0))
    return case_of("provenance", floats(8, 16), kwargs={"ids": replace(integers(*ids), stats=stats)})


@pytest.mark.parametrize(("signal", "cause"), [("SIGABRT", "index-out-of-range"), ("SIGSEGV", None)])
def test_words_that_were_lost_stand_in_the_source(signal, cause):
    """Two threads threw at once: "terminate called recursively" is all that the process said."""
    source = 'AOTI_TORCH_CHECK((0 <= tmp2) & (tmp2 < 100L), "index out of bounds: 0 <= tmp2 < 100L");'
    died = outcome(ending=Signalled(signal=6, name=signal), stage="run1", stderr_tail="terminate called recursively\n")
    case = by_keyword(1, 5, 9, 100, 0, 42, 17, 3)
    (first,) = plain_run.read(case, History(), died)
    facts = {"signal": signal, "kernel": EMBEDDING, "source": source, "where": "kernel"}
    crash = replace(first, code="AD-RUN-023", kind="crash", subject=EMBEDDING, facts=facts)
    found = [first, crash, *blame.lost_check(case, crash, died)]
    found = [replace(item, id=f"E{at}") for at, item in enumerate(found)]
    named = {item.cause: item for item in diagnose(found, load_playbooks(), case=case)}
    if cause is None:
        assert "index-out-of-range" not in named
        return
    assert named[cause].rank == 1
    assert named[cause].subject == "kwargs['ids']"
    plan = plan_treatment(cause, case, found)
    assert plan is not None
    assert plan.steps[0]["high"] == 99


def test_the_facts_of_an_index():
    finding = ask(by_keyword(1, 5, 9, 100, 0, 42, 17, 3), bounds(EMBEDDING))[1]
    assert (finding.code, finding.kind, finding.severity) == ("AD-RUN-022", "index", Severity.INFO)
    assert finding.subject == "kwargs['ids']"
    assert {key: finding.facts[key] for key in ("element", "index", "value", "bound", "origin", "operators")} == {
        "element": "kwargs['ids'][3]",
        "index": (3,),
        "value": 100,
        "bound": 100,
        "origin": "inner.e.weight.shape[0]",
        "operators": ("aten.embedding",),
    }
    assert finding.observed == finding.facts["chain"]


def test_the_diagnosis_names_the_element():
    case = by_keyword(1, 5, 9, 100, 0, 42, 17, 3)
    found = first_of(case, bounds(EMBEDDING))
    assert (found.cause, found.subject, found.confidence) == ("index-out-of-range", "kwargs['ids']", 0.95)
    assert "out of range: kwargs['ids'][3] = 100 is not in 0..99 (inner.e.weight.shape[0]) in cpp_fused" in found.title
    assert found.remedy.text == "Correct kwargs['ids'][3], or make inner.e.weight.shape[0] larger."
    assert found.evidence == ("E0", "E1")
    assert "index out of bounds" in found.looked_like


def test_only_the_input_of_the_check_is_treated():
    """The other input holds 500 rightly: it indexes nothing."""
    other = replace(integers(*range(493, 501)), stats=ValueStats(low=493, high=500, nan=0, inf=0, zeros=0))
    case = by_keyword(1, 5, 9, 100, 0, 42, 17, 3)
    kwargs = replace(
        case.inputs.kwargs,
        children=(*case.inputs.kwargs.children, replace(case.inputs.kwargs.children[0], value=other)),
        keys=("ids", "other"),
    )
    case = replace(case, inputs=replace(case.inputs, kwargs=kwargs))
    plan = plan_treatment("index-out-of-range", case, ask(case, bounds(EMBEDDING)))
    assert list(plan.steps) == [{"op": "clamp_values", "path": "kwargs['ids']", "low": 0, "high": 99}]


def test_a_dynamic_bound_can_be_treated_too():
    ids = replace(integers(1, 8), stats=ValueStats(low=1, high=8, nan=0, inf=0, zeros=0))
    case = case_of("dynamic_index", floats(8, 16), ids)
    found = ask(case, bounds("cpp_fused_add_index_0", "tmp7 < ks1"))
    assert list(plan_treatment("index-out-of-range", case, found).steps) == [
        {"op": "clamp_values", "path": "args[1]", "low": 0, "high": 7}
    ]


def test_an_index_that_is_computed_is_not_clamped():
    case = case_of("buffered", integers(*range(8)), integers(1, 2, 3, 4, 50, 49, 2, 0))
    run = bounds(BUFFERED, "tmp12 < 100L")
    assert plan_treatment("index-out-of-range", case, ask(case, run)) is None
    assert "args[1][4] = 50 gives index 101 of 100 (e.weight.shape[0])" in first_of(case, run).title


def test_without_an_element_the_input_is_named():
    case = case_of("buffered", integers(*range(8)), integers(*range(8)))
    found = first_of(case, bounds(BUFFERED))
    assert (found.subject, found.confidence) == ("args[0]", 0.85)
    assert (
        "index out of 0..99 (e.weight.shape[0]), computed from args[0] through aoti_torch_cpu_cumsum in" in found.title
    )


def division(*divisor):
    zeros = ValueStats(low=min(divisor), high=max(divisor), nan=0, inf=0, zeros=divisor.count(0))
    return case_of("division", integers(*range(8)), replace(integers(*divisor), stats=zeros), integers(40, shape=()))


def test_a_zero_that_is_divided_by():
    case = division(4, 5, 6, 7, 0, 9, 10, 11)
    run = raised("inductor_cpu_throw_if_integer_div_error, cpp_prefix.h:827, ZeroDivisionError")
    found = first_of(case, run)
    assert (found.cause, found.subject) == ("integer-division", "args[1]")
    assert "args[1][4] = 0 in cpp_fused_add_div_floor_divide" in found.title
    assert plan_treatment("integer-division", case, ask(case, run)) is not None


def test_a_zero_that_the_kernel_computes():
    case = division(4, 5, 6, 7, 3, 9, 10, 11)
    run = raised("ZeroDivisionError")
    assert "args[1][4] = 3 gives a zero in cpp_fused_add_div" in first_of(case, run).title
    assert plan_treatment("integer-division", case, ask(case, run)) is None


def test_a_broken_promise():
    found = first_of(division(4, 5, 6, 7, 8, 9, 10, 11), raised("Expected u0 <= 16 but received 40"))
    assert (found.cause, found.subject) == ("runtime-assert", "args[2]")
    assert found.title.endswith("args[2] = 40, expected u0 <= 16")


@pytest.mark.parametrize(("printed", "received"), [("u0", 5), ("s77", 3)])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_the_number_of_a_condition_with_two_names_is_derived_from_the_inputs(printed, received, shape):
    """The code prints the first of its names in some order: `Expected u0 < s77 but received 3` is about 5."""
    wrapper = text("assert_operand.wrapper").replace("std::to_string(u0)", f"std::to_string({printed})")
    values = integers(5, 2, shape=shape) if shape else integers(5, shape=())
    found = first_of(
        case_of("assert_operand", floats(3, 4), values, wrapper=wrapper),
        raised(f"Expected u0 < s77 but received {received}"),
    )
    assert (found.cause, found.subject) == ("runtime-assert", "args[1]")
    assert found.title.endswith(f"args[1]{'[0]' if shape else ''} = 5, expected u0 < s77 (s77 = 3)")


def test_a_number_that_is_not_printed_and_not_in_the_inputs_is_not_named():
    wrapper = text("assert_operand.wrapper").replace("std::to_string(u0)", "std::to_string(s77)")
    unknown = TensorDesc(dtype="int64", shape=(), stride=())
    run = raised("Expected u0 < s77 but received 3")
    found = ask(case_of("assert_operand", floats(3, 4), unknown, wrapper=wrapper), run)[-1]
    assert found.facts["chain"].startswith("expected u0 < s77 ← computed from args[1]; bound from s77 = 3")
    assert found.facts["value"] is None


@pytest.mark.parametrize("run", [outcome(), raised("out of memory"), raised("index out of range in self")])
def test_not_asked(run):
    case = by_keyword(*range(8))
    findings = tuple(plain_run.read(case, History(), run))
    answer = blame.plan(case, History(outcomes={"plain_run": run}, findings=findings))
    assert isinstance(answer, NotChecked)
    assert answer.reason.startswith("the plain run did not end in a bounds check")


def test_a_package_without_sources():
    case = replace(by_keyword(*range(8)), contract=None)
    run = bounds(EMBEDDING)
    findings = tuple(plain_run.read(case, History(), run))
    answer = blame.plan(case, History(findings=findings))
    assert isinstance(answer, NotChecked)
    assert answer.reason == "the package contains no sources to trace"


def test_a_healthy_run_of_a_package_without_sources_has_nothing_to_be_asked():
    case = by_keyword(*range(8))
    bare = replace(case, contract=replace(case.contract, bound_checks=(), kernels=()))
    findings = tuple(plain_run.read(bare, History(), outcome()))
    answer = blame.plan(bare, History(outcomes={"plain_run": outcome()}, findings=findings))
    assert isinstance(answer, NotChecked)
    assert answer.moot


@pytest.mark.parametrize(("nan", "cause"), [(True, "input-nan"), (False, "index-out-of-range")])
def test_nan_that_was_made_an_index_is_what_is_wrong(nan, cause):
    def error(code, kind, severity=Severity.ERROR, **facts):
        return Evidence(
            code=code, kind=kind, severity=severity, subject="args[0]", observed="", expected="", facts=facts, id=code
        )

    checked = error("AD-IN-019", "nan", Severity.WARN)
    chain = Chain(kernel="cpp_fused_embedding_0", what="index out of 0..19", sources=("args[0]",))
    asked = history(checked) if nan else history()
    assert blame._is_nan(chain, asked) is nan
    assert blame._is_nan(replace(chain, sources=("args[0]", "args[1]")), asked) is False
    findings = [
        checked,
        error("AD-RUN-001", "raised", symptom="index-out-of-bounds", stage="run1"),
        error("AD-RUN-022", "index", Severity.INFO, kernel="cpp_fused_embedding_0", nan=blame._is_nan(chain, asked)),
    ]
    assert [item.cause for item in diagnose(findings, load_playbooks(), case=case())][:1] == [cause]
