"""In what way a script can show the failure: it just ends so, the package's own checks say so, or an assertion does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aotidoctor.commands.repro.failure import Ending, ending_of_finding
from aotidoctor.commands.repro.script import Recipe
from aotidoctor.commands.repro.treated import treated_call
from aotidoctor.diagnosis.treatments import plan_treatment
from aotidoctor.model.case import Case
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.record import record

CHECKS = ("AOTI_RUNTIME_CHECK_INPUTS", "1")
PLAIN, CHECKED, VALUES, AGAIN = "AD-RUN-001", "AD-RUN-003", "AD-RUN-005", "AD-RUN-002"
_OF_CAUSE = {"input-mutation": "unchanged", "output-alias": "separate"}
_NUMERIC = ("numeric-difference", "codegen-bug", "train-mode", "weights-differ", "custom-op-fake-kernel")


@record
class Mode:
    """``wanted`` is how it must end, None for an assertion of the script (or where nothing was run before)."""

    name: str
    recipe: Recipe
    wanted: Ending | None = None

    def matches(self, ending: Ending | None) -> bool:
        """Whether the script ended as this way of showing the failure does."""
        if ending is None:
            return False
        if self.recipe.verdict:
            return ending.kind == "raised" and ending.detail.startswith("AssertionError")
        return self.wanted is None or ending == self.wanted


def modes(case: Case, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence], base: Recipe) -> Iterator[Mode]:
    """The ways to try, the most direct first."""
    plain = _error(findings, PLAIN)
    if plain is not None:
        wanted = ending_of_finding(plain)
        yield Mode(name="as it is", recipe=base, wanted=wanted)
        return
    if not any(item.code == PLAIN for item in findings):
        yield Mode(name="load only", recipe=replace(base, args=None))
        if base.args is not None:
            yield Mode(name="the call", recipe=base)
        return
    cause = diagnoses[0].cause if diagnoses else ""
    if _error(findings, VALUES) is not None:
        yield Mode(name="NaN or Inf", recipe=replace(base, verdict="finite"))
    if any(item.code == AGAIN and item.kind == "differs" for item in findings):
        yield Mode(name="two calls", recipe=replace(base, verdict="again"))
    if cause in _OF_CAUSE:
        yield Mode(name=_OF_CAUSE[cause], recipe=replace(base, verdict=_OF_CAUSE[cause]))
    yield from _repaired(case, diagnoses, findings, base)
    checked = _error(findings, CHECKED)
    if checked is not None:
        recipe = replace(base, environment=(*base.environment, CHECKS))
        yield Mode(name="input checks", recipe=recipe, wanted=ending_of_finding(checked))
    if case.reference is not None and cause in _NUMERIC:
        yield Mode(name="the exported program", recipe=replace(base, verdict="reference"))


def _repaired(case: Case, diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence], base: Recipe) -> Iterator[Mode]:
    """The call against the repaired call, where the repair is known to help."""
    healed = {item.facts.get("cause") for item in findings if item.code == "AD-TREAT-001" and item.kind == "healed"}
    first = diagnoses[0].cause if diagnoses else ""
    plan = plan_treatment(first, case, findings) if first in healed else None
    call = treated_call(case.inputs, plan.steps) if plan is not None and case.inputs is not None else None
    if call is not None:
        yield Mode(name="the repaired call", recipe=replace(base, verdict="treated", treated=call))


def _error(findings: Sequence[Evidence], code: str) -> Evidence | None:
    return next((item for item in findings if item.code == code and item.severity is Severity.ERROR), None)
