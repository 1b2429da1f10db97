"""What comes of an attempt in words, which remedies are tried of which cause, and the marks of those that are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.jobs import Job
from aotidoctor.model.report import Diagnosis, Remedy, Status, Treatment
from aotidoctor.model.run import ChildError, Exited, Outcome, Request, Signalled, TimedOut
from aotidoctor.triage.finish import NEEDS_MODEL, OF_THE_MODEL, Invocation, StaticResult, finish
from aotidoctor.triage.try_remedies import Attempt, _with_attempts, judge_attempt, planned_remedies
from tests.every import every
from tests.unit.reports.builders import healthy

PLAN = Treatment(name="strict off", cause="", text="Export with strict=False.", steps=({"op": "strict"},))
REFUSED = "Could not guard on data-dependent expression u0 > 3 (unhinted: u0 > 3)."


def outcome(stage="done", ending=None, error=None, **result):
    request = Request(probe="try_remedy", job="try_remedy", payload=Job())
    error = None if error is None else ChildError(type="RuntimeError", message=error)
    done = ending or Exited(code=0 if error is None else 1, done=error is None)
    return Outcome(id="R2", request=request, ending=done, stage=stage, result=result, error=error)


def diagnosis(cause, *evidence, verified=False):
    return Diagnosis(
        cause=cause, rank=1, status=Status.SUSPECTED, confidence=0.9, title=cause, looked_like="", subject=None,
        evidence=evidence, remedy=Remedy(text="Do this.", verified=verified), playbook=cause, severity=Severity.ERROR,
    )  # fmt: skip


def finding(code, kind, **facts):
    return Evidence(code=code, kind=kind, severity=Severity.ERROR, subject=None, observed="", expected="", facts=facts, id="E1")  # fmt: skip


AGREES = {"agrees": True, "compiled": True}
OTHER = {"what": "with 11 in dim 1 of args[0]"}
WORDS = (
    (outcome(**AGREES), "healed", "it compiles and agrees with eager"),
    (outcome(**AGREES, second={**OTHER, "agrees": True}), "healed", "also with 11 in dim 1"),
    (outcome(agrees=True, compiled=False), "healed", "not compiled: there is no C++ compiler here"),
    (outcome(agrees=False, compiled=True, differs="result (shape)"), "differs", "other results than eager: result (shape)"),
    (outcome(**AGREES, second={**OTHER, "agrees": False, "differs": "result"}), "differs", "other results than eager with 11"),
    (outcome(**AGREES, second={**OTHER, "error": "AssertionError: 10"}), "differs", "refused with 11 in dim 1 of args[0]"),
    (outcome("export", error=REFUSED.replace("u0", "u1")), "stayed", "the same error"),
    (outcome("export", error=f"Consider torch._check. {REFUSED}"), "stayed", "the same error"),
    (outcome("compile", error="no kernel\nmore"), "other-error", "another error in compile: RuntimeError: no kernel"),
    (outcome("reference", error="no such file"), "untried", "not tried: RuntimeError: no such file"),
    (outcome("compile", TimedOut(limit=180.0)), "untried", "no end within 180 s, in compile"),
    (outcome("run1", Signalled(signal=11, name="SIGSEGV")), "other-error", "SIGSEGV in run1"),
)  # fmt: skip


@every("given", WORDS, ids=[words for _, _, words in WORDS])
def test_words_of_an_attempt(given):
    ended, kind, words = given
    attempt = judge_attempt(PLAN, ended, REFUSED)
    assert attempt is not None
    assert attempt.kind == kind
    assert words in attempt.words


def test_a_remedy_that_does_not_apply_is_no_attempt():
    assert judge_attempt(PLAN, outcome("remedy", error="it was exported so"), REFUSED) is None


PLANS = (
    ("unbacked-symint", finding("AD-LOG-001", "unbacked-symint"), REFUSED, ["check_sizes", "strict off", "strict on"]),
    # A float is no size.
    ("unbacked-symint", finding("AD-LOG-001", "unbacked-symint", split="float"), REFUSED, []),
    ("export-specialization", finding("AD-LOG-001", "x"), "Suggested fixes:\n  t = 10\n", ["dims auto", "dims suggested"]),
    ("export-specialization", finding("AD-LOG-001", "x"), "Suggested fixes:\n  t = 2*_t\n", ["dims suggested", "dims auto"]),
    ("export-specialization", finding("VERIFY-A13", "merged"), "", ["own_inputs"]),
    ("export-specialization", finding("AD-LOG-001", "x", split="example-of-one"), "to be a constant (1)", ["larger_example"]),
    ("codegen-bug", finding("AD-RUN-018", "kernel"), "", ["settings without vectors", "settings without patterns"]),
    ("export-specialization", finding("VERIFY-A06", "one-value"), "", []),
    ("export-unsupported", finding("VERIFY-A12", "mutated-constant"), "", ["buffers"]),
    ("export-unsupported", finding("AD-LOG-001", "x"), "holds a torch.Size", ["plain_sizes", "strict off", "strict on"]),
    ("train-mode", finding("VERIFY-A07", "dropout"), "", ["eval"]),
    ("model-error", finding("VERIFY-L07", "model"), "expected 3 channels", []),
    ("codegen-bug", finding("AD-RUN-018", "dtype", operator="aten.any.dim", expected="uint8"), "", ["cast"]),
    ("codegen-bug", finding("AD-RUN-018", "found"), "", []),
)  # fmt: skip


@every("given", PLANS, ids=[f"{cause}-{'-'.join(names)}" for cause, _, _, names in PLANS])
def test_remedies_that_are_tried(given):
    cause, item, message, names = given
    assert [plan.name for plan in planned_remedies(diagnosis(cause, "E1"), [item], message)] == names


@pytest.mark.parametrize("cause", ["export-unsupported", "codegen-bug", "input-dtype", "toolchain-missing"])
@pytest.mark.parametrize("verified", [False, True])
def test_advice_about_the_model_that_nobody_tried_says_so(cause, verified):
    found = StaticResult(case=healthy().case, findings=())
    report = finish(found, (diagnosis(cause, verified=verified),), Invocation("verify", ()))
    expected = NEEDS_MODEL if cause in OF_THE_MODEL and not verified else ""
    assert report.diagnoses[0].remedy.tried == expected


KNOWN = " This message is known from pytorch#1 (https://github.com/pytorch/pytorch/issues/1). Workaround: strict=False."


@pytest.mark.parametrize("kind", ["healed", "stayed"])
def test_the_public_issue_stays_in_the_advice_without_its_workaround(kind):
    before = replace(diagnosis("export-unsupported"), remedy=Remedy(text=f"Export with strict=False.{KNOWN}"))
    after = _with_attempts(before, [Attempt(treatment=PLAN, kind=kind, words="words", run="R2")]).remedy
    assert "pytorch#1 (https://github.com/pytorch/pytorch/issues/1)." in after.text
    assert "Workaround" not in after.text
    assert ("strict=False" in after.text, after.verified) == (kind == "healed", kind == "healed")


def test_causes_of_the_model_are_causes():
    assert [cause for cause in OF_THE_MODEL if find_playbook(cause) is None] == []
