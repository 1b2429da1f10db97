"""Does the package give right answers after other weights took the place of its own?

What it does
    With a second --weights it does what a server does that swaps weights: loads the first, calls, loads the second into
    the inactive buffer, calls, swaps, calls, and goes back (double-buffer); or copies the second into tensors that the
    caller owns and then loads those again (user-managed). Each call is compared with one after a fresh load of the same
    weights into a container of its own.

Why it matters
    Nothing in the runtime reports a weight that did not arrive, or a constant that was folded from weights and that
    nobody computes again. The outputs are then those of a mixture of two checkpoints.

Example
    _FOLDED_CONST_mm: observed result[0] wrong with the second weights, copied in place, expected those of a fresh load

When it is wrong
    A swap while another thread calls is not tried. Outputs that change by less than rounding count as equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.answers import SwapStep, WeightsSwapped, WeightSwap, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, list_names, plural
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import run_of, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-042", "weight_swap"
FIND = RunFinder(CODE, NAME, __doc__)
# What a torch without the functions, or a package without its library, raises in the child.
_UNABLE = ("AttributeError", "LookupError")
_AGAIN = (
    "Call load_constants again after the copy: the next call then computes the folded constants anew. Or swap buffers "
    "instead, or compile without runtime constant folding."
)


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run with both weights, where the first ones work and no check speaks against either."""
    if case.options.next_weights is None:
        return FIND.unchecked("no second --weights was given")
    if not succeeded(history.plain) or case.inputs is None:
        return FIND.unchecked("the plain run returned no outputs", moot=False)
    if misfits := history.errors("AD-LOAD-008"):
        return FIND.unchecked(f"the weights do not fit: {misfits[0].message}", moot=False)
    changes = {"next_weights": case.options.next_weights, "weight_protocol": case.options.weight_protocol}
    return run_request(case, NAME, f"other weights by {case.options.weight_protocol}", **changes)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: right after each change, or the first call that is not, with the tensor."""
    found = parse_answer(WeightsSwapped, outcome.result).weight_swap
    if outcome.error is not None and outcome.error.type in _UNABLE:
        why = f"not possible with this torch: {outcome.error.message}"
        return [FIND.warn(outcome)("unread", None, observed=why, expected="a change of weights")]
    if not succeeded(outcome) or found is None:
        return [read_ending(CODE, case, outcome)]
    wrong = next((step for step in found.steps if not step.agrees or step.stale), None)
    if wrong is not None:
        return [_wrong_step(case, found, wrong, outcome)]
    if found.changed and found.outputs_change is False:
        observed = f"the outputs stay, though {list_names(found.changed)} changed"
        expected = "outputs of the second weights"
        return [FIND.warn(outcome)("no-effect", found.changed[0], observed=observed, expected=expected)]
    calls = f"{plural(len(found.steps), 'call')} as after fresh loads ({run_of(outcome).weight_protocol})"
    return [FIND.info(outcome)("ok", None, observed=calls, expected="the outputs of a fresh load")]


def _wrong_step(case: Case, found: WeightSwap, step: SwapStep, outcome: Outcome) -> Evidence:
    """The finding for the first call with wrong outputs, and what was seen of the constants behind it."""
    folded = tuple(spec.fqn for spec in case.contract.constants if spec.from_folded) if case.contract else ()
    healed = step is not found.steps[-1] and found.steps[-1].agrees
    kind, names, what = "differs", found.changed, "were changed"
    if step.stale:
        kind, names, what = "stale", step.stale, "have not got their new values"
    elif folded:
        kind, names, what = "stale-folded", folded, "computed from the weights before"
    text = f"{step.output or 'a constant'} is wrong with {step.name}: {list_names(names)} {what}"
    facts: dict[str, FactValue] = {"constants": names, "count": len(names), "healed": healed, "found": text}
    if kind == "stale-folded" and healed:
        text += "; right when they are loaded again"
        facts["remedy"] = _AGAIN
        facts["command"] = "model.load_constants(weights, check_full_update=False, user_managed=True)"
    return FIND.error(outcome)(
        kind,
        names[0] if names else None,
        observed=text,
        expected="the outputs of a fresh load of the same weights",
        facts=facts,
    )


PROBE = FIND.probe(plan, read, "when a second --weights was given and the plain run returned")
