"""One treated run, held against the run without the treatment: what it shows, and its evidence."""

from __future__ import annotations

from aotidoctor.model.diagnosis import Treatment
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.json_types import as_list
from aotidoctor.model.phrases import listed
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.probes import succeeded
from aotidoctor.probes.probe import evidence
from aotidoctor.probes.results import outputs, reference, same_outputs
from aotidoctor.triage.run_probes import history_of
from aotidoctor.triage.session import Session

CODE, NAME = "AD-TREAT-001", "treatment"
# Its treatment hands over the same values in the order in which the compiled code reads them, and the same bits show
# that this code goes by the tensor's own strides, or its lazy bits (an extern operator does). A cast is no such proof:
# a narrower tensor is read past its end, and the zeros that happen to be there may give the right answer today.
VALUE_PRESERVING = ("input-stride", "input-lazy-bit")
# Causes whose treatment has to leave no NaN: another kind of wrong is no proof.
CLEARING = ("input-nan",)
# Treatments that are right by the reference alone, and that clear outputs of NaN and Inf whatever the reference says.
BY_REFERENCE, BY_FINITE = ("nodes",), ("zeros",)
# They put in values that nobody means: a reference without the operator has others.
MADE_UP = (*BY_FINITE, "stand-in")
LINE = 160


@record
class Trial:
    """One treated run. ``healed`` as defined above; ``harmless`` when nothing changed although values were kept."""

    treatment: Treatment
    baseline: Outcome
    outcome: Outcome
    healed: bool
    harmless: bool
    how: str


def judge(session: Session, treatment: Treatment, baseline: Outcome, outcome: Outcome) -> Trial:
    """What ``outcome`` of the treated call shows beside ``baseline``."""
    plain = session.outcomes["plain_run"]
    same = succeeded(plain) and succeeded(outcome) and same_outputs(outputs(plain, 0), outputs(outcome, 0))
    compared = reference(outcome)
    disagrees = bool(compared) and compared.get("agrees") is False
    keeps_values = (
        treatment.cause in VALUE_PRESERVING and bool(outputs(outcome, 0)) and _values_tell(session, treatment)
    )
    harmless = same and keeps_values and not history_of(session).has("AD-RUN-002", "differs")
    # Nothing can be loaded into constants of the code: the outputs stay, and the reference is the one that changes.
    written = tuple(map(str, as_list(compared.get("written"))))
    changed = (not same or bool(written)) and (treatment.cause not in CLEARING or nonfinite(outcome) == 0)
    healed = succeeded(outcome) and not disagrees and not harmless and (not succeeded(baseline) or changed)
    if treatment.name in BY_REFERENCE:
        healed = healed and compared.get("agrees") is True
    elif treatment.name in BY_FINITE:
        healed = succeeded(outcome) and nonfinite(baseline, inf=True) > 0 == nonfinite(outcome, inf=True)
    return Trial(
        treatment=treatment,
        baseline=baseline,
        outcome=outcome,
        healed=healed,
        harmless=harmless,
        how=_how(baseline, outcome, compared.get("agrees") is True, written=written),
    )


def nonfinite(outcome: Outcome, *, inf: bool = False) -> int:
    """How many NaN the first call returned; with ``inf`` how many Inf as well."""
    return sum((value.nan or 0) + ((value.inf or 0) if inf else 0) for value in outputs(outcome, 0))


def same_failure(baseline: Outcome, treated: Outcome) -> bool:
    """Both failed, and alike. Where the treated run fails in another way, there is a second fault behind the first."""
    if succeeded(baseline) or succeeded(treated):
        return False
    if baseline.error is None or treated.error is None:
        # A treated run that dies before it gets there shows nothing: 2.6 itself dies when it loads weights.
        return baseline.error is treated.error and baseline.stage == treated.stage
    return (baseline.error.type, baseline.error.message) == (treated.error.type, treated.error.message)


def _values_tell(session: Session, treatment: Treatment) -> bool:
    """Whether another order of the values could be seen at all: not in a mask of ones."""
    tensors = dict(session.case.inputs.tensors()) if session.case.inputs is not None else {}
    touched = [
        tensors[path] for step in treatment.steps if isinstance(path := step.get("path"), str) and path in tensors
    ]
    return not any(
        tensor.stats is not None
        and tensor.stats.low is not None
        and tensor.stats.low == tensor.stats.high
        and not tensor.stats.nan + tensor.stats.inf
        for tensor in touched
    )


def _how(baseline: Outcome, outcome: Outcome, agrees: bool, *, written: tuple[str, ...] = ()) -> str:
    without = (
        f"fails untreated ({baseline.id})"
        if not succeeded(baseline)
        else f"different outputs untreated ({baseline.id})"
    )
    checked = " under AOTI_RUNTIME_CHECK_INPUTS=1" if baseline.request.probe == "check_inputs" else ""
    also = ", and the outputs agree with the reference" if agrees else ""
    if written:
        others = f"{listed(written, 3)} of the package's code"
        return f"differs from the reference ({baseline.id}), agrees with its weights and {others} in it ({outcome.id})"
    return f"{without}, works treated ({outcome.id}){checked}{also}"


def evidence_of(trial: Trial) -> Evidence:
    """What the report shows of the trial."""
    kind = kind_of(trial)
    observed = {
        "healed": trial.how,
        "harmless": "bit-identical outputs with and without it",
        "untried": f"it could not be tried, the run ended in {trial.outcome.stage}",
        "stayed": _stayed(trial),
    }[kind]
    return evidence(
        CODE,
        kind,
        Severity.INFO,
        trial.outcome,
        observed=f"{trial.treatment.text}: {observed}",
        expected="the failure gone",
        facts={"cause": trial.treatment.cause, "treatment": trial.treatment.name},
    )


def _stayed(trial: Trial) -> str:
    if not succeeded(trial.outcome):
        alike = succeeded(trial.baseline) or same_failure(trial.baseline, trial.outcome)
        return "the failure remained" if alike else f"a different failure: {_words_of(trial.outcome)}"
    same = not succeeded(trial.baseline) or same_outputs(outputs(trial.baseline, 0), outputs(trial.outcome, 0))
    if not same and reference(trial.outcome).get("agrees") is False:
        return "different outputs, which also disagree with the reference"
    return "the same outputs" if same else "different outputs, but not those that would prove it"


def _words_of(outcome: Outcome) -> str:
    """The first line of the error; how it ended where there is none."""
    told = outcome.error.message.strip() if outcome.error is not None else ""
    return told.splitlines()[0][:LINE] if told else f"it ended in {outcome.stage}"


VERDICTS = {
    "healed": "healed",
    "harmless": "no difference",
    "untried": "could not be tried",
    "stayed": "the failure remained",
}


def kind_of(trial: Trial) -> str:
    """A key of ``VERDICTS``."""
    if trial.healed or trial.harmless:
        return "healed" if trial.healed else "harmless"
    return "untried" if _untried(trial) else "stayed"


def _untried(trial: Trial) -> bool:
    """The treated run ended on its way to the call, where the untreated one had come further."""
    before = ("start", "import", "setup", "inputs")
    return not succeeded(trial.outcome) and trial.outcome.stage in before and trial.baseline.stage not in before
