"""What counts as proof: the failure there without the treatment, gone with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.case import TorchBuild
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import ValueStats
from aotidoctor.model.report import Diagnosis, Remedy, Status
from aotidoctor.model.run import Signalled
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.triage import treated_run
from aotidoctor.triage.state import Session
from tests.artifacts.releases import ROOT as RELEASES
from tests.unit.checks.input_builders import Spec, call, case_of, contract_of, tensor
from tests.unit.probes.outcomes import outcome, raised

FINE = [[{"digest": "good"}], [{"digest": "good"}]]
GARBAGE = [[{"digest": "bad"}], [{"digest": "bad"}]]
COMPLAINT = "input_handles[0]: unmatched stride value at 0, expected: 16, but got: 1"


class Replies:
    """A runner that answers with recorded outcomes, in order."""

    def __init__(self, *outcomes):
        self.outcomes, self.requests = list(outcomes), []

    def run(self, request):
        self.requests.append(request)
        return replace(self.outcomes.pop(0), id=f"T{len(self.requests)}", request=request)


def diagnosis(cause, rank=1):
    return Diagnosis(
        cause=cause,
        rank=rank,
        status=Status.SUSPECTED,
        confidence=0.9,
        title=cause,
        looked_like="",
        subject="args[0]",
        evidence=(),
        remedy=Remedy(text=""),
        playbook=cause,
    )


def stride_climb(*replies, plain, checked=None, stats=None):
    contract = contract_of(Spec(16, 16))
    case = case_of(contract, call(tensor(16, 16, stride=(1, 16), stats=stats)))
    session = Session(case=case, runner=Replies(*replies))
    session.outcomes["plain_run"] = plain
    if checked is not None:
        session.outcomes["check_inputs"] = checked
    facts = {"path": "args[0]", "observed_stride": (1, 16), "expected_stride": (16, 1), "observed_shape": (16, 16)}
    session.add(
        [
            Evidence(
                code="AD-IN-014",
                kind="stride",
                severity=Severity.ERROR,
                subject="args[0].stride",
                observed="(1, 16)",
                expected="(16, 1)",
                facts=facts,
            )
        ]
    )
    return session


def test_a_crash_that_the_treatment_heals_is_confirmed():
    died = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    session = stride_climb(outcome(outputs=FINE), plain=died)
    verdicts = treated_run.treat(session, [diagnosis("input-stride")])
    assert set(verdicts.confirmed) == {"input-stride"}
    assert session.runner.requests[0].payload.treatment
    confirmed = treated_run.apply_verdicts([diagnosis("input-stride")], verdicts)[0]
    assert confirmed.status is Status.CONFIRMED
    assert confirmed.remedy.verified


def test_a_crash_that_stays_refutes():
    died = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    session = stride_climb(died, plain=died)
    verdicts = treated_run.treat(session, [diagnosis("input-stride")])
    assert (verdicts.confirmed, verdicts.refuted) == ({}, ("input-stride",))


def test_a_treatment_that_did_not_get_to_the_call_is_none():
    """An import that fails here, say: neither healed nor stayed."""
    died = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    session = stride_climb(raised("no such module", stage="setup"), plain=died)
    verdicts = treated_run.treat(session, [diagnosis("input-stride")])
    assert (verdicts.confirmed, verdicts.refuted) == ({}, ())
    assert [item.kind for item in session.findings if item.code == treated_run.TREATMENT_CODE] == ["untried"]


def test_a_proof_by_a_stand_in_is_no_remedy_that_was_tried():
    verdicts = treated_run.TreatmentVerdicts(confirmed={"custom-op-crash": "how"}, shown=("custom-op-crash",))
    (confirmed,) = treated_run.apply_verdicts([diagnosis("custom-op-crash")], verdicts)
    assert confirmed.status is Status.CONFIRMED
    assert not confirmed.remedy.verified


def test_another_failure_after_the_treatment_refutes_nothing():
    first, second = (raised(f"{COMPLAINT}{at}", probe="check_inputs") for at in (1, 2))
    session = stride_climb(second, plain=outcome(outputs=GARBAGE), checked=first)
    verdicts = treated_run.treat(session, [diagnosis("input-stride")])
    assert (verdicts.confirmed, verdicts.refuted) == ({}, ())
    (told,) = [item for item in session.findings if item.code == treated_run.TREATMENT_CODE]
    assert f"{COMPLAINT}2" in told.observed


def test_a_silent_fault_is_proved_by_the_packages_own_checks():
    session = stride_climb(
        outcome(outputs=FINE), plain=outcome(outputs=GARBAGE), checked=raised(COMPLAINT, probe="check_inputs")
    )
    assert "input-stride" in treated_run.treat(session, [diagnosis("input-stride")]).confirmed


def test_a_silent_fault_that_no_check_sees_is_proved_by_other_outputs():
    session = stride_climb(outcome(outputs=FINE), plain=outcome(outputs=GARBAGE))
    assert "input-stride" in treated_run.treat(session, [diagnosis("input-stride")]).confirmed


@pytest.mark.parametrize("checked", [None, raised(COMPLAINT, probe="check_inputs")])
def test_the_same_bits_of_a_mask_of_ones_prove_nothing(checked):
    ones = ValueStats(low=1, high=1, nan=0, inf=0, zeros=0)
    session = stride_climb(outcome(outputs=FINE), plain=outcome(outputs=FINE), checked=checked, stats=ones)
    verdicts = treated_run.treat(session, [diagnosis("input-stride")])
    assert (set(verdicts.confirmed), verdicts.harmless) == (set() if checked is None else {"input-stride"}, ())


@pytest.mark.parametrize("checked", [None, raised(COMPLAINT, probe="check_inputs")])
def test_the_same_bits_with_and_without_are_harmless(checked):
    session = stride_climb(outcome(outputs=FINE), plain=outcome(outputs=FINE), checked=checked)
    verdicts = treated_run.treat(session, [diagnosis("input-stride")])
    assert (verdicts.confirmed, verdicts.harmless) == ({}, ("input-stride",))
    demoted = treated_run.demote_harmless(session.findings, verdicts.harmless)
    assert Severity.ERROR not in {item.severity for item in demoted}


@pytest.mark.parametrize(
    ("treated", "harmless"), [(outcome(outputs=FINE), ("input-lazy-bit",)), (outcome(outputs=GARBAGE), ())]
)
def test_a_lazy_bit_that_the_operators_go_by_is_harmless(treated, harmless):
    stats = ValueStats(low=None, high=None, nan=0, inf=0, zeros=0)  # complex numbers have no order
    given = call(tensor(16, 16, dtype="complex64", conj=True, stats=stats))
    session = Session(case=case_of(contract_of(Spec(16, 16, dtype="complex64")), given), runner=Replies(treated))
    session.outcomes["plain_run"] = outcome(outputs=FINE)
    session.add([Evidence(code="AD-IN-011", kind="conj", severity=Severity.ERROR, subject="args[0]",
                          observed="the conj bit", expected="resolved values", facts={"path": "args[0]"})])  # fmt: skip
    verdicts = treated_run.treat(session, [diagnosis("input-lazy-bit")])
    assert (verdicts.harmless, set(verdicts.confirmed)) == (harmless, set() if harmless else {"input-lazy-bit"})


def test_a_reference_that_disagrees_with_the_treated_outputs_forbids_confirmation():
    died = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    treated = outcome(outputs=FINE, result={"reference": {"agrees": False}})
    session = stride_climb(treated, plain=died)
    session.case = replace(session.case, options=replace(session.case.options, reference="e.pt2"))
    assert treated_run.treat(session, [diagnosis("input-stride")]).confirmed == {}
    assert session.runner.requests[0].payload.reference == "e.pt2"


SPOILT = [[{"digest": "bad", "nan": 2}]]


def values_climb(kind, *replies, plain):
    session = stride_climb(*replies, plain=plain)
    facts = {"kernel": "cpp_fused_log_0", "symbol": "cpp_fused_log_0", "index": 0, "beyond": True}
    session.findings = [
        Evidence(
            code="AD-RUN-016",
            kind=kind,
            severity=Severity.ERROR,
            subject="cpp_fused_log_0",
            observed="",
            expected="",
            facts=facts,
        )
    ]
    session.case = replace(session.case, options=replace(session.case.options, reference="exported.pt2"))
    return session


@pytest.mark.parametrize(("compared", "proved"), [({"agrees": True}, True), ({"agrees": False}, False), ({}, False)])
def test_values_of_the_program_prove_by_outputs_that_agree_and_refute_nothing(compared, proved):
    session = values_climb(
        "diverges", outcome(outputs=FINE, result={"reference": compared}), plain=outcome(outputs=GARBAGE)
    )
    verdicts = treated_run.treat(session, [diagnosis("numeric-difference")])
    assert (set(verdicts.confirmed), verdicts.shown, verdicts.refuted) == (
        ({"numeric-difference"}, ("numeric-difference",), ()) if proved else (set(), (), ())
    )


@pytest.mark.parametrize(
    ("compared", "proved"),
    [({"agrees": True, "written": ["l.bias"]}, True), ({"agrees": True}, False), ({"agrees": False}, False)],
)
def test_weights_in_the_code_are_proved_by_a_reference_that_has_them_and_outputs_that_stay(compared, proved):
    session = stride_climb(outcome(outputs=FINE, result={"reference": compared}), plain=outcome(outputs=FINE))
    session.case = replace(session.case, options=replace(session.case.options, reference="exported.pt2"))
    verdicts = treated_run.treat(session, [diagnosis("weights-differ")])
    assert (set(verdicts.confirmed), verdicts.refuted) == ({"weights-differ"} if proved else set(), ())


@pytest.mark.parametrize(("left", "proved"), [({}, True), ({"nan": 1}, False), ({"inf": 1}, False)])
def test_zeros_for_nan_prove_by_outputs_without_any_whatever_the_program_gives(left, proved):
    session = values_climb("nan", outcome(outputs=[[{"digest": "other", **left}]]), plain=outcome(outputs=SPOILT))
    verdicts = treated_run.treat(session, [diagnosis("nan-produced")])
    assert (set(verdicts.confirmed), verdicts.refuted) == ({"nan-produced"} if proved else set(), ())
    assert session.runner.requests[0].payload.reference is None


def test_outputs_that_changed_are_not_called_the_same():
    session = values_climb(
        "diverges", outcome(outputs=FINE, result={"reference": {"agrees": False}}), plain=outcome(outputs=GARBAGE)
    )
    treated_run.treat(session, [diagnosis("numeric-difference")])
    (told,) = [item for item in session.findings if item.code == treated_run.TREATMENT_CODE]
    assert told.kind == "stayed"
    assert "same" not in told.observed


def test_without_a_treatment_the_report_says_so():
    session = stride_climb(plain=outcome(outputs=FINE))
    assert treated_run.treat(session, [diagnosis("kernel-crash")]).confirmed == {}
    assert [item.code for item in session.not_checked] == ["AD-TREAT-001"]


def test_one_thread_proves_nothing_while_the_size_of_an_input_is_open():
    """Packages of torch 2.6 hold none: what lies behind a batch that is too small differs from run to run."""
    died = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    for is_open in (False, True):
        session = stride_climb(outcome(outputs=FINE), plain=died)
        if is_open:
            leaf = replace(session.case.contract.leaves[0], rank=None, dims=None)
            contract = replace(session.case.contract, leaves=(leaf,))
            session.case = replace(session.case, contract=contract)
        verdicts = treated_run.treat(session, [diagnosis("threading")])
        assert (verdicts.confirmed == {}) is is_open


@pytest.mark.parametrize(("torch", "refuted"), [("2.6.0+cu124", ()), ("2.7.1", ("weights-not-loaded",))])
def test_weights_that_were_loaded_prove_nothing_to_torch_2_6(torch, refuted):
    died = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    session = stride_climb(died, plain=died)
    host = replace(session.case.host, torch=TorchBuild(version=torch, path="/t"))
    constants = (ConstantSpec(name="w", original_fqn="w", dtype="float32", shape=(2,), stride=(1,)),)
    contract = replace(session.case.contract, constants=constants)
    session.case = replace(session.case, host=host, contract=contract)
    finding = Evidence(
        code="AD-LOAD-002", kind="external", severity=Severity.ERROR, subject="w", observed="1", expected="0"
    )
    session.findings = [finding]
    verdicts = treated_run.treat(session, [diagnosis("weights-not-loaded")])
    assert (verdicts.confirmed, verdicts.refuted) == ({}, refuted)
    assert session.runner.requests[0].payload.treatment


@pytest.mark.parametrize(("release", "refuted"), [("2.6.0", ()), ("2.7.1", ("weights-not-loaded",))])
def test_nor_do_weights_of_a_package_of_torch_2_6_to_a_later_torch(release, refuted):
    died = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    session = stride_climb(died, plain=died)
    (model,) = read_artifact(str(RELEASES / release / "emb" / "model.pt2")).models
    host = replace(session.case.host, torch=TorchBuild(version="2.13.0", path="/t"))
    constants = (ConstantSpec(name="w", original_fqn="w", dtype="float32", shape=(2,), stride=(1,)),)
    contract = replace(session.case.contract, constants=constants)
    session.case = replace(session.case, host=host, contract=contract, model=model)
    session.findings = [
        Evidence(code="AD-LOAD-002", kind="external", severity=Severity.ERROR, subject="w", observed="1", expected="0")
    ]
    assert treated_run.treat(session, [diagnosis("weights-not-loaded")]).refuted == refuted
