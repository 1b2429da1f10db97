"""Prove a cause by treating it: the failure must be there without the treatment and gone with it.

Three kinds of baseline, the first that applies:

- the plain run failed: the treated run must return;
- the plain run returned and the package's own input checks complained: they must be silent about the treated call;
- nothing complained: the treated call must give other outputs than the untreated one (that was the silent fault).

Where a reference is given, the treated outputs must also agree with it. A copy with other strides that leaves every
output bit as it was shows that the strides do not matter to this package: the finding becomes a warning.

A treatment that is tried in emulation is judged in emulation: the fault must be there without it and gone with it,
with everything carried out. A cause that is confirmed in this way is always reported as confirmed in emulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.checks.matching.package_facts import main_object
from aotidoctor.checks.registry import CHECKS
from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.diagnosis.rank import confirm, is_guess, rerank
from aotidoctor.diagnosis.treatments import combine, plan_treatment
from aotidoctor.model.evidence import Evidence, FactValue, Severity, list_names
from aotidoctor.model.record import as_list, record
from aotidoctor.model.report import Diagnosis, EventKind, Treatment
from aotidoctor.model.run import Outcome
from aotidoctor.model.torch_names import CHECK_INPUTS
from aotidoctor.probes import emulation
from aotidoctor.probes.payload import call_outputs, reference_comparison, run_of, same_outputs
from aotidoctor.probes.probe import RunFinder, succeeded
from aotidoctor.readers.releases.torch_releases import built_by, release_of
from aotidoctor.triage.state import Session, TreatedRun

# One treated run, compared with the run without the treatment.
TREATMENT_CODE, TREATMENT = "AD-TREAT-001", "treatment"
FIND = RunFinder(TREATMENT_CODE, TREATMENT, "")
# Causes whose treatment passes the same values in the order in which the compiled code reads them: equal bits then show
# that this code uses the tensor's own strides, or its lazy bits (an extern operator does). A cast is no such proof: a
# narrower tensor is read past its end, and the zeros that happen to be there may give the right answer.
VALUE_PRESERVING = ("input-stride", "input-lazy-bit")
# Causes whose treatment has to leave no NaN: another kind of wrong is no proof.
CLEARING = ("input-nan",)
# Treatments that are judged by the reference alone, and those that clear outputs of NaN and Inf.
BY_REFERENCE, BY_FINITE = ("nodes",), ("zeros",)
# Treatments with made-up values: a reference without the operator has others.
MADE_UP = (*BY_FINITE, "stand-in")
LINE = 160


def judge_treated_run(session: Session, treatment: Treatment, baseline: Outcome, outcome: Outcome) -> TreatedRun:
    """Compare ``outcome`` of the treated call with ``baseline``."""
    plain = session.outcomes["plain_run"]
    same = succeeded(plain) and succeeded(outcome) and same_outputs(call_outputs(plain, 0), call_outputs(outcome, 0))
    compared = reference_comparison(outcome)
    disagrees = bool(compared) and compared.get("agrees") is False
    # Another order of the values cannot be seen in a tensor of equal ones, such as a mask of ones.
    tensors = dict(session.case.inputs.tensors()) if session.case.inputs is not None else {}
    stats = [tensors[path].stats for step in treatment.steps if (path := str(step.get("path"))) in tensors]
    constant = any(
        one is not None and one.low is not None and one.low == one.high and not one.nan + one.inf for one in stats
    )
    keeps_values = treatment.cause in VALUE_PRESERVING and bool(call_outputs(outcome, 0)) and not constant
    harmless = same and keeps_values and not session.history().has("AD-RUN-002", "differs")
    # Nothing can be loaded into constants of the code: the outputs stay, and the reference is the one that changes.
    written = tuple(map(str, as_list(compared.get("written"))))
    changed = (not same or bool(written)) and (treatment.cause not in CLEARING or nonfinite(outcome) == 0)
    healed = succeeded(outcome) and not disagrees and not harmless and (not succeeded(baseline) or changed)
    if treatment.name in BY_REFERENCE:
        healed = healed and compared.get("agrees") is True
    elif treatment.name in BY_FINITE:
        healed = succeeded(outcome) and nonfinite(baseline, inf=True) > 0 == nonfinite(outcome, inf=True)
    return TreatedRun(
        treatment=treatment,
        baseline=baseline,
        outcome=outcome,
        healed=healed,
        harmless=harmless,
        how=_how(baseline, outcome, compared.get("agrees") is True, written=written),
    )


def nonfinite(outcome: Outcome, *, inf: bool = False) -> int:
    """Number of NaN in the outputs of the first call; with ``inf``, of NaN and Inf."""
    return sum((value.nan or 0) + ((value.inf or 0) if inf else 0) for value in call_outputs(outcome, 0))


def same_failure(baseline: Outcome, treated: Outcome) -> bool:
    """Whether both failed, and alike. A treated run that fails in another way has a second fault behind the first."""
    if succeeded(baseline) or succeeded(treated):
        return False
    if baseline.error is None or treated.error is None:
        # A treated run that dies before it gets there shows nothing: 2.6 itself dies when it loads weights.
        return baseline.error is treated.error and baseline.stage == treated.stage
    return (baseline.error.type, baseline.error.message) == (treated.error.type, treated.error.message)


def _how(baseline: Outcome, outcome: Outcome, agrees: bool, *, written: tuple[str, ...] = ()) -> str:
    without = f"{'different outputs' if succeeded(baseline) else 'fails'} untreated ({baseline.id})"
    checked = f" under {CHECK_INPUTS}=1" if baseline.request.probe == "check_inputs" else ""
    also = ", and the outputs agree with the reference" if agrees else ""
    if written:
        others = f"{list_names(written, 3)} of the package's code"
        return f"differs from the reference ({baseline.id}), agrees with its weights and {others} in it ({outcome.id})"
    return f"{without}, works treated ({outcome.id}){checked}{also}"


def evidence_of(trial: TreatedRun) -> Evidence:
    """Finding that describes the trial."""
    kind, error = kind_of(trial), trial.outcome.error
    if kind == "healed":
        observed = trial.how
    elif kind == "harmless":
        observed = "bit-identical outputs with and without it"
    elif kind == "untried":
        observed = f"it could not be tried, the run ended in {trial.outcome.stage}"
    elif not succeeded(trial.outcome):
        alike = succeeded(trial.baseline) or same_failure(trial.baseline, trial.outcome)
        lines = error.message.strip().splitlines() if error is not None else []
        words = lines[0][:LINE] if lines else f"it ended in {trial.outcome.stage}"
        observed = "the failure remained" if alike else f"a different failure: {words}"
    elif not succeeded(trial.baseline) or same_outputs(call_outputs(trial.baseline, 0), call_outputs(trial.outcome, 0)):
        observed = "the same outputs"
    elif reference_comparison(trial.outcome).get("agrees") is False:
        observed = "different outputs, which also disagree with the reference"
    else:
        observed = "different outputs, but not those that would prove it"
    return _evidence(trial.treatment, trial.outcome, kind, observed, expected="the failure gone")


def _evidence(
    treatment: Treatment, outcome: Outcome, kind: str, observed: str, *, expected: str, **facts: FactValue
) -> Evidence:
    words = f"{treatment.text}: {observed}"
    facts = {"cause": treatment.cause, "treatment": treatment.name, **facts}
    return FIND.info(outcome)(kind, None, observed=words, expected=expected, facts=facts)


VERDICTS = {
    "healed": "healed",
    "harmless": "no difference",
    "untried": "could not be tried",
    "stayed": "the failure remained",
}


def kind_of(trial: TreatedRun) -> str:
    """Key of ``VERDICTS`` for a trial."""
    if trial.healed or trial.harmless:
        return "healed" if trial.healed else "harmless"
    # The treated run ended before the call, while the untreated one had come further.
    before = ("start", "import", "setup", "inputs")
    ended = not succeeded(trial.outcome) and trial.outcome.stage in before and trial.baseline.stage not in before
    return "untried" if ended else "stayed"


# Treatments in the order of the causes.
# Steps with made-up values, which prove a cause and are no remedy; where they are one, there is a command.
PROOFS = ("stand_in", "stand_in_operator", "fill_weights", "clamp_dim", "mend_offsets", "put_nodes", "put_zeros")
# A failure in one of these stages, or none at all, is judged by the first call.
BEFORE_SECOND = ("start", "import", "attach", "setup", "inputs", "load", "trace", "after_load", "run1")
# Reads beyond the end of an input differ with every setting: a failure that goes away proves nothing there.
BY_CHANCE = ("threading",)
# Importing a library does not always register its classes: a failure that stays proves nothing.
NEVER_REFUTED = ("pytree-class-missing",)
# First release where loading weights later works; a package of an earlier one fails also with a later torch.
WEIGHTS_WORK = (2, 7)


@record
class TreatmentVerdicts:
    """Causes that trials confirmed (with how), refuted, or found harmless.

    ``shown`` are causes confirmed by something that is no remedy, such as a stand-in.
    """

    confirmed: dict[str, str]
    shown: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    emulated: bool = False


def treat(session: Session, diagnoses: Sequence[Diagnosis], *, quiet: bool = False) -> TreatmentVerdicts:
    """Try the treatment of the first cause; with several faults at once, all of them together.

    ``quiet``: do not report that there is no treatment to try, as the caller tries again later.
    """
    # The run in which the failure shows; the plain run where it shows in none.
    baseline, checked = session.outcomes.get("plain_run"), session.outcomes.get("check_inputs")
    if succeeded(baseline) and checked is not None and not succeeded(checked):
        baseline = checked
    found = planned_treatments(session, diagnoses)
    if baseline is None or not found:
        if diagnoses and not quiet:
            none = f"there is no unambiguous treatment of {diagnoses[0].cause} to try"
            reason = "there is no run to compare a treated one with" if found else none
            session.leave_out(TREATMENT_CODE, TREATMENT, reason)
        return TreatmentVerdicts(confirmed={})
    first = _try(session, found[0], baseline)
    if first is None:
        return TreatmentVerdicts(confirmed={})
    if first.harmless:
        return TreatmentVerdicts(confirmed={}, harmless=(found[0].cause,))
    if first.healed:
        return TreatmentVerdicts(confirmed={found[0].cause: first.how}, shown=_no_remedies(found[:1]))
    both = combine(found)
    if len(found) < 2 or both is None:
        fails_alike = same_failure(baseline, first.outcome)
        if found[0].cause in CLEARING and succeeded(baseline) and succeeded(first.outcome):
            # It has as many NaN as before, where it should have none.
            fails_alike = 0 < nonfinite(baseline) <= nonfinite(first.outcome)
        refuted = fails_alike and _can_refute(session, found[0].cause)
        return TreatmentVerdicts(confirmed={}, refuted=(found[0].cause,) if refuted else ())
    trial = _try(session, both, baseline)
    if trial is None or not trial.healed:
        return TreatmentVerdicts(confirmed={})
    how = f"{trial.how}, with {len(found)} treatments together"
    return TreatmentVerdicts(confirmed={plan.cause: how for plan in found}, shown=_no_remedies(found))


def apply_verdicts(diagnoses: Sequence[Diagnosis], verdicts: TreatmentVerdicts) -> tuple[Diagnosis, ...]:
    """Mark the diagnoses that trials confirmed, rank proven ones first, and leave out those that they explain."""
    proven = [found for cause in verdicts.confirmed if (found := find_playbook(cause)) is not None]
    explained = {cause for one in proven for cause in one.explains} - verdicts.confirmed.keys()
    made = []
    for item in diagnoses:
        if item.cause in explained:
            continue
        how, remedied = verdicts.confirmed.get(item.cause), item.cause not in verdicts.shown
        made.append(confirm(item, how, remedied=remedied, emulated=verdicts.emulated) if how is not None else item)
    return rerank(made)


def demote_harmless(findings: Sequence[Evidence], harmless: Sequence[str]) -> list[Evidence]:
    """Turn errors of harmless causes into warnings, with the package's own complaint about those inputs."""
    names = {cause.replace("-", "_") for cause in harmless}
    codes = {check.code for check in CHECKS if check.name in names} | {"AD-RUN-003"}
    return [
        replace(
            item,
            severity=Severity.WARN,
            message=f"{item.message} (harmless here: the repaired call gives bit-identical outputs)",
            facts={**item.facts, "harmless": True},
        )
        if item.code in codes and item.severity is Severity.ERROR
        else item
        for item in findings
    ]


def planned_treatments(session: Session, diagnoses: Sequence[Diagnosis]) -> list[Treatment]:
    """Treatments of the error diagnoses that have one, in rank order, one per name."""
    made: dict[str, Treatment] = {}
    for item in diagnoses:
        guess = item.cause in BY_CHANCE and is_guess(item.cause, session.case)
        if item.severity is not Severity.ERROR or guess:
            continue
        plan = plan_treatment(item.cause, session.case, session.findings)
        if plan is not None:
            made.setdefault(plan.name, plan)
    return list(made.values())


def _no_remedies(plans: Sequence[Treatment]) -> tuple[str, ...]:
    return tuple(
        plan.cause
        for plan in plans
        # A reference sees the same treated inputs: it agrees whichever of several ways is right.
        if plan.others or (not plan.command and any(step.get("op") in PROOFS for step in plan.steps))
    )


def _can_refute(session: Session, cause: str) -> bool:
    if cause != "weights-not-loaded":
        return cause not in NEVER_REFUTED
    case, torch = session.case, session.case.host.torch
    before = built_by(case.model, main_object(case)).before if case.model is not None else None
    old_torch = torch is not None and (release_of(torch.version) or WEIGHTS_WORK) < WEIGHTS_WORK
    return not old_torch and not (before is not None and before <= WEIGHTS_WORK)


def _try(session: Session, treatment: Treatment, baseline: Outcome) -> TreatedRun | None:
    payload = replace(run_of(baseline), treatment=tuple(treatment.steps))
    if succeeded(baseline) or baseline.stage in BEFORE_SECOND:
        payload = replace(payload, calls=1)
    if session.case.options.reference is not None and treatment.name not in MADE_UP:
        payload = replace(payload, reference=session.case.options.reference)
    request = replace(baseline.request, probe=TREATMENT, payload=payload, purpose=treatment.text)
    tried = next((trial for trial in session.trials if trial.outcome.request.payload == request.payload), None)
    if tried is not None and tried.baseline is baseline:
        return tried
    session.begins(treatment.name)
    outcome = session.run(request)
    if outcome is None:
        session.leave_out(TREATMENT_CODE, TREATMENT, session.refusal())
        return None
    trial = judge_treated_run(session, treatment, baseline, outcome)
    session.trials.append(trial)
    session.add([evidence_of(trial)])
    verdict = VERDICTS[kind_of(trial)]
    session.ended(treatment.name, outcome.seconds, verdict, ok=trial.healed, kind=EventKind.TREATMENT)
    return trial


def treat_in_emulation(session: Session, diagnoses: Sequence[Diagnosis]) -> TreatmentVerdicts | None:
    """Try treatments in emulation; None where no fault was emulated or the GPU itself was there."""
    baseline = session.outcomes.get(emulation.NAME)
    if baseline is None or "plain_run" in session.outcomes or not emulation.is_bad(baseline):
        return None
    for plan in planned_treatments(session, diagnoses)[:2]:
        outcome = _try_in_emulation(session, plan, baseline)
        if outcome is None:
            break
        if emulation.finished_clean(outcome):
            how = f"its fault is there untreated ({baseline.id}) and gone treated ({outcome.id})"
            return TreatmentVerdicts(confirmed={plan.cause: how}, emulated=True)
    return TreatmentVerdicts(confirmed={}, emulated=True)


def _try_in_emulation(session: Session, treatment: Treatment, baseline: Outcome) -> Outcome | None:
    session.begins(treatment.name)
    payload = replace(run_of(baseline), watch=None, treatment=tuple(treatment.steps))
    outcome = session.run(replace(baseline.request, probe=TREATMENT, payload=payload, purpose=treatment.text))
    if outcome is None:
        return None
    healed = emulation.finished_clean(outcome)
    kind, observed = ("healed", "no fault in emulation") if healed else ("stayed", "the fault remained")
    session.add([_evidence(treatment, outcome, kind, observed, expected="the fault gone", emulated=True)])
    session.ended(treatment.name, outcome.seconds, VERDICTS[kind], ok=healed, kind=EventKind.TREATMENT)
    return outcome
