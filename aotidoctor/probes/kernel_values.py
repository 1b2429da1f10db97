"""Which kernel or operator produces the bad values?

What it does
    Repeats the call and examines, before and after each kernel and operator of the compiled code, the tensors that it
    reads and writes: NaN, Inf, smallest, largest and mean value. With --reference the exported program is also run node
    by node, and what each call wrote is compared with the node that has the same values. Nothing is compiled again.

Why it matters
    Outputs show that something is wrong; only the values in between show where it begins.

Example:
    cpp_fused_add_log_0 (aten.log): observed 32 NaN written, its inputs finite, expected finite values

When it is wrong
    The name of a fused kernel lists its operators, not their order. An intermediate result that matches no node of the
    program is not a fault by itself: only calls on the way to a wrong output are blamed, and of their results only
    those that ought to be nodes. A wrong reduction is therefore named by the call that uses it (``behind`` names the
    reduction).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.comparison import read_comparison
from aotidoctor.localize.watched_values import FirstBad, WatchedValues, first_diverging, first_nonfinite, read_watched
from aotidoctor.model.answers import parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.jobs import Watch
from aotidoctor.model.localization import Watching
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.torch_names import foreign
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Reuse, RunFinder, succeeded
from aotidoctor.probes.tool_effects import tool_failure_note
from aotidoctor.probes.values import NONFINITE, explains_values

CODE, NAME = "AD-RUN-016", "kernel_values"
FIND = RunFinder(CODE, NAME, __doc__)
WRONG = ("differs", "nan")
UNSEEN = "launches of Triton kernels are not traced: an in-place write would be attributed to the call before it"


def plan(case: Case, history: History) -> Request | Reuse | NotChecked:
    """Plan a run for NaN or Inf from clean inputs, for wrong numbers, and for ``localize``.

    The emulation of a package that cannot run here follows the values at the same time.
    """
    emulated = history.outcomes.get("emulation")
    if "plain_run" not in history.outcomes and emulated is not None and "watch" in emulated.result:
        if case.options.localize or history.has("AD-RUN-011", *WRONG):
            return Reuse(probe="emulation")
        return FIND.unchecked("nothing indicates that the numbers are wrong")
    if case.inputs is None or not succeeded(history.plain):
        return FIND.unchecked("the plain run returned no outputs")
    # NaN or Inf in an output while inputs and constants have none; NaN, while they have no more than Inf.
    unexplained = any(
        facts.get("clean") is True or (facts.get("input_inf") is True and facts.get("input_nan") is False)
        for facts in (item.facts for item in history.of("AD-RUN-005", *NONFINITE))
    )
    if not case.options.localize and not unexplained and not history.has("AD-RUN-011", *WRONG):
        return FIND.unchecked("the outputs are finite, and nothing indicates that they are wrong")
    if not case.options.localize and explains_values(history):
        return FIND.unchecked("a static finding already explains wrong numbers")
    launches = case.contract is not None and any(call.kind == "triton" for call in case.contract.kernels)
    if launches and device_of(case) == "cuda":
        return FIND.unchecked(UNSEEN, moot=False)
    settings = Watch(reference=case.options.reference)
    return run_request(case, NAME, "with the values of every kernel", watch=settings, observe=(), calls=1)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """Findings: nan, inf or propagated; diverges or agrees; clean or unavailable."""
    if not succeeded(outcome):
        ending = read_ending(CODE, case, outcome)
        return [note("unavailable", outcome, f"the watched run failed: {ending.observed}")]
    watched = read_watched(case, outcome)
    if watched.run.problem is not None:
        return [note("unavailable", outcome, f"values were not followed: {watched.run.problem}")]
    return read_values(case, history, watched, outcome)


def read_values(case: Case, history: History, watched: WatchedValues, outcome: Outcome) -> list[Evidence]:
    """The findings of values that were followed by any means."""
    found: list[Evidence] = []
    # NaN first; Inf only without NaN.
    for nan in (True, False):
        bad = first_nonfinite(case, watched, nan=nan) if not found else None
        if bad is not None:
            found.append(_bad_buffer(bad, history, outcome, nan=nan))
    found += _divergence(case, history, watched, outcome)
    return found or [note("clean", outcome, f"{len(watched.calls)} calls; no NaN or Inf reaches an output")]


def note(kind: str, outcome: Outcome, observed: str, **facts: FactValue) -> Evidence:
    """A note that is not about a single call."""
    return FIND.info(outcome)(kind, None, observed=observed, expected="the first call with bad values", facts=facts)


def _bad_buffer(bad: FirstBad, history: History, outcome: Outcome, *, nan: bool) -> Evidence:
    what, count = ("NaN", bad.buffer.nan) if nan and bad.buffer.nan else ("Inf", bad.buffer.inf)
    if bad.source is not None:
        return note("propagated", outcome, f"{bad.call.name} reads {what} in {bad.source.name}", source=bad.source.name)
    facts: dict[str, FactValue] = {
        **_place(bad, outcome),
        "nan": bad.buffer.nan,
        "inf": bad.buffer.inf,
        "custom": bad.call.kind == "custom",
        "half": bad.buffer.dtype in ("float16", "bfloat16"),
        "lowest": bad.lowest,
        "domain": bad.domain,
        **_of_reference(history, what),
    }
    held = sum(buffer.inf for buffer in bad.call.read)
    reads = f", {held} Inf read" if held else ", its inputs finite"
    reads += f" (lowest {bad.lowest:.4g})" if bad.lowest is not None else ""
    return FIND.at(Severity.ERROR if what == "NaN" or facts["half"] else Severity.WARN, outcome)(
        what.lower(),
        bad.name,
        observed=f"{count} {what} written to {bad.buffer.name}{reads}",
        expected="finite values",
        facts=facts,
    )


def _of_reference(history: History, what: str) -> dict[str, FactValue]:
    """Whether the reference returns NaN or Inf as well, which says who computes it, and the advice that follows."""
    run = history.outcomes.get("reference")
    outputs = read_comparison(run) if run is not None and succeeded(run) else ()
    bad = [item for item in outputs if item.nan or item.inf]
    if run is None or not bad:
        return {}
    if not any(item.nan_differs for item in bad):
        remedy = (
            f"The reference gives {what} at the same places: the model computes it from these values, not the compiler."
            " Guard the argument of that operation (clamp, eps, a mask that leaves one entry), and export again."
        )
        command = "x = torch.log(x.clamp(min=1e-12)); y = a / (b + 1e-12)   # in forward, then export again"
        confirm = "a guarded model whose outputs are finite"
        return {"reference": "same", "remedy": remedy, "command": command, "confirm": confirm}
    if any(item.reference_nan or item.reference_inf for item in bad):
        return {}
    remedy = (
        f"The reference is finite for these values ({run.id}): either they stand at the edge of what the operation can "
        "take, where rounding decides, or the compiled code is at fault. Move them away from the edge first."
    )
    command = "torch.export.load('exported.pt2').module().double()(*(x.double() for x in args))   # finite as well?"
    confirm = "the same operation in float64: finite there, it is the compiled code"
    return {"reference": "finite", "remedy": remedy, "command": command, "confirm": confirm}


def _divergence(case: Case, history: History, watched: WatchedValues, outcome: Outcome) -> list[Evidence]:
    """Blame a call only if the outputs are wrong, and not because of different weights."""
    if not watched.run.compared:
        return []
    drawn = case.needs.random_ops
    if drawn:
        why = f"{drawn[0]} draws different random numbers from the program: the values cannot be compared"
        return [note("unavailable", outcome, why)]
    judged = history.has("AD-RUN-011") and not history.has("AD-RUN-011", *WRONG)
    bad = None if judged else first_diverging(case, watched)
    if bad is None:
        return [note("agrees", outcome, "what every call wrote agrees with the program", notes=watched.run.notes)]
    error = f", off by {bad.buffer.error:.3g} from {bad.buffer.matches}" if bad.buffer.error is not None else ""
    return [
        FIND.error(outcome)(
            "diverges",
            bad.name,
            observed=f"{bad.buffer.name} has the values of no node of the program{error}",
            expected="results of the program, from inputs that agree with it",
            facts={
                **_place(bad, outcome),
                # PyTorch's own operators may be called in the way of custom ones.
                "custom": bad.call.kind == "custom" and bool(foreign([bad.call.name])),
                "closest": bad.buffer.matches,
                "error": bad.buffer.error,
                "behind": bad.behind,
                "certain": bad.behind is None,
                "decomposition_differs": watched.run.decomposition_differs,
            },
        )
    ]


def _place(bad: FirstBad, outcome: Outcome) -> dict[str, FactValue]:
    """``symbol`` is the name in the library, ``beyond`` whether a later call writes a bad output."""
    watch = parse_answer(Watching, outcome.result).watch
    calls = watch.calls if watch is not None else ()
    return {
        "kernel": bad.call.name,
        "symbol": calls[bad.call.index].symbol if bad.call.index < len(calls) else None,
        "index": bad.call.index,
        "beyond": bad.beyond,
        "buffer": bad.buffer.name,
        "dtype": bad.buffer.dtype,
        "operators": bad.operators,
        "where": bad.where,
    }


def left_out(outcome: Outcome) -> list[NotChecked]:
    """A note where watching failed: the package itself had returned before."""
    failed = outcome.request.probe == NAME and not succeeded(outcome)
    return [tool_failure_note(CODE, NAME, outcome, "watch")] if failed else []


_WHEN = "for NaN or Inf from clean inputs, and for outputs that differ from the reference"
PROBE = replace(FIND.probe(plan, read, _WHEN), left_out=left_out)
