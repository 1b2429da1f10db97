"""When the exported program is compiled again, and what the answers mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.contract import HostNeeds
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Request, TimedOut
from aotidoctor.probes import compiler_bisect, kernel_values, printed_values, recompiled
from tests.unit.probes.outcomes import case, history, outcome, raised

PLAIN = outcome(outputs=[[{"digest": "wrong"}]])


def finding(code, kind, severity=Severity.ERROR, **facts):
    return Evidence(
        code=code, kind=kind, severity=severity, subject=None, observed="", expected="", facts=facts, id="E1"
    )


DIFFERS = finding("AD-RUN-011", "differs")


def exported(**options):
    made = case(reference="exported.pt2", setup="setup.py", **options)
    return replace(made, reference=ExportedFacts(name="model"))


def compared(agrees, *, digest="wrong", distance=0.5):
    leaf = {"path": "result", "agrees": agrees, "max_abs_diff": distance}
    return outcome(
        "recompiled", outputs=[[{"digest": digest}]], result={"reference": {"agrees": agrees, "outputs": [leaf]}}
    )


def reason(plan):
    assert isinstance(plan, NotChecked)
    return plan.reason


def test_a_package_that_differs_is_compiled_again():
    plan = recompiled.plan(exported(), history(DIFFERS, plain_run=PLAIN))
    assert isinstance(plan, Request)
    assert (plan.job, plan.payload.reference, plan.payload.code.setup) == ("recompile", "exported.pt2", "setup.py")
    assert (plan.payload.printer, plan.payload.provenance, plan.payload.bisect) == (0, True, None)
    assert not plan.env


@pytest.mark.parametrize("kind", recompiled.WRONG)
def test_every_kind_of_wrong_asks(kind):
    assert isinstance(recompiled.plan(exported(), history(finding("AD-RUN-011", kind))), Request)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ((), "not found to differ"),
        ((finding("AD-RUN-011", "agrees", Severity.INFO),), "not found to differ"),
        ((DIFFERS, finding("AD-RUN-002", "differs")), "AD-RUN-002"),
        ((DIFFERS, finding("AD-RUN-009", "depends")), "AD-RUN-009"),
        ((DIFFERS, finding("AD-RUN-011", "weights")), "AD-RUN-011"),
        ((DIFFERS, finding("AD-IN-014", "stride")), "AD-IN-014"),
    ],
)
def test_when_something_else_explains_it(found, why):
    assert why in reason(recompiled.plan(exported(), history(*found)))


def test_a_harmless_finding_explains_nothing():
    found = (DIFFERS, finding("AD-IN-014", "stride", Severity.WARN))
    assert isinstance(recompiled.plan(exported(), history(*found)), Request)


def test_without_an_exported_program():
    assert "--reference" in reason(recompiled.plan(case(), history(DIFFERS)))
    assert "not an exported program" in reason(recompiled.plan(case(reference="ref.py:model"), history(DIFFERS)))


def test_a_package_for_another_device_is_not_compiled():
    made = exported()
    cuda = replace(made, contract=replace(made.contract, needs=HostNeeds(device_type="cuda")))
    assert "GPU" in reason(recompiled.plan(cuda, history(DIFFERS)))


def test_settings_that_the_package_tells():
    made = exported()
    narrow = replace(made, contract=replace(made.contract, needs=HostNeeds(device_type="cpu", isa=("avx2",))))
    wide_host = replace(narrow, host=replace(narrow.host, cpu_flags=frozenset({"avx2", "avx512f"})))
    assert recompiled.settings_of(wide_host) == {"cpp.simdlen": 256}
    assert recompiled.settings_of(narrow) == {}
    tuned = replace(made, model=replace(made.model, kernel_sources={"k.cpp": "void cpp_CppMicroGemmFP32Vec()"}))
    assert recompiled.settings_of(tuned) == {"max_autotune": True}


def test_right_when_compiled_here():
    facts = {"same_kernels": True, "same_sources": False, "first_difference": "kernel.cpp:6: `1.01`, here `1.0`"}
    found = recompiled.read_with_facts(history(plain_run=PLAIN), compared(True), facts)
    assert (found.kind, found.severity) == ("agrees", Severity.WARN)
    assert "kernel.cpp:6" in found.observed
    same = recompiled.read_with_facts(history(plain_run=PLAIN), compared(True), {"same_sources": True})
    assert "damaged" in same.observed


def test_wrong_when_compiled_here():
    found = recompiled.read_with_facts(history(plain_run=PLAIN), compared(False), {})
    assert (found.kind, found.facts["same_outputs"], found.facts["max_abs_diff"]) == ("differs", True, 0.5)
    other = recompiled.read_with_facts(history(plain_run=PLAIN), compared(False, digest="else"), {})
    assert other.facts["same_outputs"] is False


def test_a_call_that_gives_nothing_to_compare():
    assert recompiled.read(exported(), history(), raised("boom"))[0].kind == "unavailable"
    assert (
        recompiled.read(exported(), history(), outcome(result={"reference": {"error": "x"}}))[0].kind == "unavailable"
    )


def test_a_compile_that_fails_is_no_error_of_the_package():
    found = recompiled.read_compile(
        exported(), raised("first\nAssertionError: no lowering for aten.foo", stage="compile")
    )
    assert (found.kind, found.severity, found.facts["stage"]) == ("failed", Severity.WARN, "compile")
    assert "no lowering for aten.foo" in found.observed
    late = recompiled.read_compile(exported(), outcome(ending=TimedOut(limit=5), stage="compile"))
    assert "no end within 5 s" in late.observed


WRONG_HERE = finding("AD-RUN-017", "differs", Severity.WARN, bisect_seconds=70.0)


def test_the_search_needs_leave():
    told = reason(compiler_bisect.plan(exported(), history(WRONG_HERE)))
    assert "aotidoctor localize model.pt2" in told
    assert "--reference exported.pt2 --setup setup.py" in told
    assert "70 s" in told
    for options in ({"budget": 60.0}, {"localize": True}):
        plan = compiler_bisect.plan(exported(**options), history(WRONG_HERE))
        assert isinstance(plan, Request)
        assert plan.payload.provenance is False


def test_the_search_needs_a_wrong_compiler():
    right = finding("AD-RUN-017", "agrees", Severity.WARN)
    assert "was not found" in reason(compiler_bisect.plan(exported(localize=True), history(right)))


NAN = finding("AD-RUN-005", "nan-output", clean=True)


def test_values_are_printed_where_they_cannot_be_followed():
    unavailable = finding("AD-RUN-016", "unavailable", Severity.INFO)
    plan = printed_values.plan(exported(), history(NAN, unavailable))
    assert (plan.job, plan.payload.printer) == ("recompile", 2)
    assert printed_values.plan(exported(), history(DIFFERS, unavailable)).payload.printer == 1


@pytest.mark.parametrize("kind", printed_values.FOLLOWED)
def test_values_that_were_followed_are_not_printed(kind):
    found = finding("AD-RUN-016", kind, Severity.INFO)
    assert "followed" in reason(printed_values.plan(exported(), history(NAN, found)))


def test_values_of_a_package_that_does_something_else_tell_nothing():
    held = "Dtype: float32\nSize: [2]\nMin value: {0}\nMax value: {0}\n"
    text = f"[  before_launch - k - buf0  ]:\n{held.format(1)}[  after_launch - k - buf0  ]:\n{held.format('nan')}"
    plain = outcome(outputs=[[{"nan": 3}]])
    same = outcome("printed_values", outputs=[[{"nan": 3, "digest": "else"}]], result={"printed": text})
    other = outcome("printed_values", outputs=[[{"nan": 2, "digest": "else"}]], result={"printed": text})
    assert printed_values.read(exported(), history(plain_run=plain), same)[0].kind == "nan"
    assert printed_values.read(exported(), history(plain_run=plain), same)[0].facts["method"] == "value printer"
    assert printed_values.read(exported(), history(plain_run=plain), other)[0].kind == "unavailable"
    assert printed_values.read(exported(), history(plain_run=plain), raised("x"))[0].kind == "unavailable"
    assert kernel_values.CODE == printed_values.CODE


def test_saved_values_show_the_call_that_diverges():
    made = exported(localize=True)
    kernel = "cpp_fused_exp_0"
    from aotidoctor.model.contract import KernelCall

    contract = replace(made.contract, kernels=(KernelCall(name=kernel, kind="cpp", arguments=("arg0_1", "buf0")),))
    held = {"kernel": kernel, "buffer": "buf0", "dtype": "float32", "shape": [1, 2]}
    near = {"matches": "exp", "target": "aten.exp", "error": 0.1, "agrees": False}
    records = [
        {**held, "when": "before", "sha256": "garbage"},
        {**held, "when": "after", "sha256": "wrong", "near": near},
    ]
    ran = outcome("printed_values", outputs=[[{"digest": "wrong"}]], result={"saved": records})
    found = printed_values.read(replace(made, contract=contract), history(plain_run=PLAIN), ran)[0]
    assert (found.kind, found.facts["kernel"], found.facts["closest"]) == ("diverges", kernel, "exp")
