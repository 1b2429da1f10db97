"""Findings of the comparison with the reference, on recorded outcomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.artifact import ExportedFacts, ProgramLeaf
from aotidoctor.model.case import Options, Tolerance, Tolerances
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.run import Request, Signalled, TimedOut
from aotidoctor.probes import reference
from tests.unit.localize.test_comparison import FEW, SAME, compared, leaf, weight
from tests.unit.probes.outcomes import case, history, outcome, raised

OK = outcome(outputs=[[{"digest": "aa"}]])
ROUNDING = {"verdict": "both-within", "judged": "both-within", "error": 0.4, "reference_error": 24.0, "allowed": 200.0}
CLOSER = {**ROUNDING, "verdict": "reference-imprecise", "judged": "reference-imprecise"}
NOBODY = {
    "verdict": "unknown",
    "judged": "unknown",
    "error": None,
    "reference_error": None,
    "reason": "there is no float64 run: the program has random numbers (aten.rand)",
}
AGREES = {"agrees": True, "what": None, "verdict": "agrees", "judged": None}


def read(*leaves, weights=(), **more):
    ran = compared(*leaves, **more)
    result = {**ran.result, "weights": list(weights)} if weights else ran.result
    return reference.read(case(), history(), outcome("reference", result=result))


def causes(findings):
    found = [item for item in findings if item.severity is not Severity.INFO]
    return [item.cause for item in diagnose(found, load_playbooks({item.code for item in found}))] if found else []


ANOTHER = Evidence(code="AD-REF-001", kind="another-program", severity=Severity.WARN, subject="mm", observed="", expected="", id="E1")  # fmt: skip
FURTHER = {**ROUNDING, "error": 3e5, "reference_error": 12.0, "allowed": 2.5e6}


@pytest.mark.parametrize(
    ("known", "changes", "kind"),
    [
        ((), FURTHER, "precision"),
        ((ANOTHER,), FURTHER, "differs"),
        ((ANOTHER,), ROUNDING, "precision"),
        ((ANOTHER,), AGREES, "agrees"),
    ],
)
def test_rounding_is_no_excuse_for_another_program(known, changes, kind):
    ran = compared(leaf(**{"nan": [0, 0], **changes}))
    (item,) = reference.read(case(), history(*known), outcome("reference", result=ran.result))
    assert item.kind == kind
    assert causes([item, *known]) == (["numeric-difference"] if kind == "differs" else [])


@pytest.mark.parametrize(
    ("changes", "kind", "severity", "cause", "observed"),
    [
        (AGREES, "agrees", "info", None, "within tolerance"),
        (ROUNDING, "precision", "info", None, "both within what float32 can do here (200)"),
        (CLOSER, "precision", "warn", None, "the package is the closer one"),
        ({**ROUNDING, "asked": True}, "precision", "warn", None, "both within"),
        # Off by as much as the numbers are big: an eps of float32 is 1.2e-7.
        ({**ROUNDING, "error": 8e6, "reference_error": 8e6}, "precision", "warn", None, "no digit of either is right"),
        ({}, "differs", "error", "numeric-difference", "off by 4e+03 eps from float64, the reference by 0.5"),
        (NOBODY, "differs", "error", "numeric-difference", "random numbers"),
        ({"what": "nan"}, "nan", "error", "numeric-difference", "1 NaN and 0 Inf, the reference has 0 and 0"),
        ({"what": "dtype", "verdict": "dtype"}, "dtype", "error", "output-spec", "the reference's is float32"),
        ({"what": "shape", "verdict": "shape"}, "structure", "error", "output-spec", "shape [2, 3]"),
        ({"what": "type", "verdict": "type"}, "structure", "error", "output-spec", "another type"),
    ],
)
def test_one_finding_for_the_outputs(changes, kind, severity, cause, observed):
    (item,) = read(leaf(**{"nan": [0, 0], **changes} if changes.get("what") != "nan" else changes), leaf("x", **AGREES))
    assert (item.kind, item.severity.value) == (kind, severity)
    assert observed in item.observed
    assert causes([item]) == ([cause] if cause else [])


@pytest.mark.parametrize(
    ("changes", "casts", "loud"),
    [
        ({**ROUNDING, "error": 0.2, "reference_error": 800.0}, ["float16"], True),
        ({**ROUNDING, "error": 0.2, "reference_error": 800.0}, [], False),
        ({**ROUNDING, "error": 700.0, "reference_error": 800.0}, ["float16"], False),
    ],
)
def test_a_rounding_of_the_program_that_the_package_leaves_out(changes, casts, loud):
    ran = compared(leaf(**{"nan": [0, 0], **changes}))
    result = {"reference": {**ran.result["reference"], "float64": {"casts": casts}}}
    (item,) = reference.read(case(), history(), outcome("reference", result=result))
    assert (item.kind, item.severity is Severity.WARN) == ("precision", loud)
    assert ("rounds to float16 in between" in item.observed) is loud
    assert ("emulate_precision_casts" in item.expected) is loud


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        ("package-wrong", "a float64 run has the reference's values"),
        ("reference-imprecise", "a float64 run has the package's values"),
        ("both-within", "which hang on rounding"),
    ],
)
def test_numbers_that_stand_at_other_places_are_judged_without_an_error(verdict, told):
    """NaN at one place here and at another there: there is no difference to measure."""
    judged = {"verdict": verdict, "judged": verdict, "error": None, "reference_error": None}
    (item,) = read(leaf(what="nan", nan=[1, 1], **judged))
    assert item.observed.endswith(f"NaN or Inf at different positions; {told}")


def test_the_package_at_fault_is_more_certain_than_an_unjudged_difference():
    playbooks = load_playbooks({"AD-RUN-011"})
    judged, unjudged = (diagnose(read(leaf(**changes)), playbooks)[0] for changes in ({}, NOBODY))
    assert (judged.confidence, unjudged.confidence) == (0.9, 0.5)


def test_the_worst_output_is_the_subject():
    (item,) = read(leaf("result[0]", **ROUNDING), leaf("result[1]"), leaf("result[2]", **NOBODY, max_abs_diff=7.0))
    assert (item.subject, item.kind) == ("result[1]", "differs")
    (item,) = read(leaf(), same_structure=False, missing=["result[1]"])
    assert (item.subject, item.kind, item.observed) == ("result[1]", "structure", "no result[1]")


def test_weights_are_named_before_the_outputs_they_explain():
    flipped = weight("l.weight", what="flipped-bit", **FEW)
    (item,) = read(leaf(), weights=[flipped, SAME])
    assert (item.kind, item.severity.value, item.subject) == ("weights", "error", "l.weight")
    assert (item.facts["what"], item.facts["max_abs_diff"]) == ("flipped-bit", 0.5)
    (found,) = diagnose([item], load_playbooks({"AD-RUN-011"}))
    assert (found.cause, found.subject) == ("weights-differ", "l.weight")
    assert "bit 30 is flipped" in found.title
    assert "damaged" in found.remedy.text


def test_weights_that_change_nothing_are_a_warning():
    outputs, weights = read(leaf(**AGREES), weights=[weight(what="cast"), SAME])
    assert (outputs.kind, weights.kind, weights.severity.value) == ("agrees", "weights", "warn")
    assert causes([outputs, weights]) == []


def test_what_was_not_compared_is_said():
    alone = {"name": "folded", "equal": None, "what": "not in the reference"}
    (item,) = read(leaf(**AGREES), weights=[SAME, alone])
    assert "1 weights equal; 1 not compared" in item.observed
    (item,) = read(leaf(), float64={"problem": None, "runs": 4, "kept": ["zoo.scale.default"]})
    assert "not in float64: zoo.scale.default" in item.observed


@pytest.mark.parametrize(
    ("package", "theirs", "observed"),
    [
        (True, False, "changed by the package"),
        (False, True, "unchanged by the package"),
        (True, True, "different values"),
    ],
)
def test_mutation(package, theirs, observed):
    wrote = {"path": "args[0]", "package": package, "reference": theirs, "agrees": False, "max_abs_diff": 1.5}
    same = {"path": "args[1]", "package": True, "reference": True, "agrees": True}
    _, item = read(leaf(**AGREES), mutation=[wrote, same])
    assert (item.kind, item.severity.value, item.subject) == ("mutation", "error", "args[0]")
    assert observed in item.observed
    assert causes([item]) == ["input-mutation"]


def test_alias():
    more = {"path": "result[0]", "package": ["args[0]"], "reference": []}
    less = {"path": "result[1]", "package": [], "reference": ["args[0]"]}
    _, first, second = read(leaf(**AGREES), alias=[more, less])
    assert [(item.kind, item.severity.value) for item in (first, second)] == [("alias", "warn"), ("alias", "info")]
    assert causes([first]) == ["output-alias"]


def test_a_float64_run_that_died_leaves_the_comparison():
    ran = outcome("reference", ending=TimedOut(limit=60), stage="float64", result=compared(leaf(**NOBODY)).result)
    (item,) = reference.read(case(), history(), ran)
    assert item.kind == "differs"


@pytest.mark.parametrize("stage", ["import", "setup", "run1", "reference"])
def test_a_comparison_that_took_too_long_is_not_the_package_s_fault(stage):
    late = outcome("reference", ending=TimedOut(limit=60), stage=stage)
    (item,) = reference.read(case(), history(), late)
    assert (item.kind, item.severity.value) == ("unavailable", "warn")


def test_a_reference_that_dies_is_not_the_package():
    died = outcome("reference", ending=Signalled(signal=11, name="SIGSEGV"), stage="reference")
    assert reference.read(case(), history(), died)[0].kind == "unavailable"
    second = outcome("reference", ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    assert reference.read(case(), history(), second)[0].kind == "signalled"


def test_a_tolerance_for_an_output_that_is_not_there():
    _, item = read(leaf(**AGREES), unused_tolerances=["result[7]"])
    assert (item.kind, item.severity.value) == ("tolerance", "warn")
    assert "result[7]" in item.observed


def test_the_request_holds_what_was_asked_for():
    given = Tolerances(rtol=(Tolerance(output=None, value=0.1), Tolerance(output="result", value=0.2)))
    asked = case(reference="exported.pt2", tolerances=given, measure=True)
    request = reference.plan(asked, history(plain_run=OK))
    assert isinstance(request, Request)
    assert request.payload.tolerances == given
    assert (request.payload.measure, request.payload.calls) == (True, 1)
    assert Options().tolerances.of("result", 0) is None


@pytest.mark.parametrize(("paths", "asked"), [((), True), (("args[0]",), False)])
def test_an_index_that_no_input_explains_is_shown_to_the_reference(paths, asked):
    given = case(reference="exported.pt2")
    blamed = Evidence(code="AD-RUN-022", kind="index", severity=Severity.INFO, subject="k", observed="", expected="", facts={"paths": paths})  # fmt: skip
    known = history(blamed, plain_run=raised("index out of bounds: 0 <= tmp1"))
    assert isinstance(reference.plan(given, known), Request) is asked


def refusal(error, *known, program=(), **refused):
    ran = outcome("reference", result={"reference": {"error": error, "refused": refused}})
    made = replace(case(), reference=ExportedFacts(name="model", leaves=program))
    (item,) = reference.read(made, history(*known), ran)
    return item


X = ProgramLeaf(name="x", path="args[0]", kind="tensor")
OUT_OF_RANGE = Evidence(code="AD-IN-017", kind="low", severity=Severity.WARN, subject="args[0].shape[0]", observed="", expected="", id="E1")  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "known", "severity", "cause"),
    [
        ("x.size()[0] % 2 == 0", (), "error", "export-specialization"),
        ("4*x.size()[0] == y.size()[1]", (), "error", "export-specialization"),
        # The code may well compute what a bound refuses: a batch of 1 of 2..64.
        ("x.size()[0] >= 2", (), "warn", None),
        ("x.size()[0] // 5 != 1", (), "warn", None),
        ("x.size()[0] == 4", (), "warn", None),
        ("x.size()[0] % 2 == 0", (ANOTHER,), "warn", None),
    ],
)
def test_a_branch_that_the_program_has_not_is_a_fault_of_the_export(condition, known, severity, cause):
    item = refusal(f"AssertionError: Guard failed: {condition}", *known, program=(X,))
    assert (item.severity.value, item.facts["path"]) == (severity, "args[0]")
    assert causes([item]) == ([cause] if cause else [])
    assert condition in item.facts["remedy"]


def test_a_size_out_of_its_range_stays_an_error():
    item = refusal("AssertionError: Guard failed: x.size()[0] >= 2", OUT_OF_RANGE, program=(X,))
    assert (item.severity.value, item.facts["symptom"]) == ("error", "bound")


@pytest.mark.parametrize("always", [True, False])
def test_a_program_that_refuses_its_own_example_is_at_fault_itself(always):
    item = refusal(
        "RuntimeError: smooth_l1_loss does not support negative values for beta.",
        operator="aten.smooth_l1_loss.default",
        paths=["args[0]", "args[1]"],
        always=always,
    )
    (found,) = diagnose([replace(item, id="E1")], load_playbooks({"AD-RUN-011"}))
    assert found.cause == "operator-refused"
    assert found.subject == ("aten.smooth_l1_loss.default" if always else None)
    assert ("Change the arguments of that call in the model" in found.remedy.text) is always
