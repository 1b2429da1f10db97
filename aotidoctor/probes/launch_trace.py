"""Which kernel fails first when each launch is waited for?

What it does
    Repeats the failed call with the package's own calls of the CUDA driver hooked: before each launch and each of
    PyTorch's operators the driver waits for the GPU (cuCtxSynchronize), and the first non-zero result is recorded with
    the kernel launched before it, its grid and its block. Nothing is compiled again.

Why it matters
    A launch only queues work, so the error of a kernel surfaces at a later call. The last kernel in a log is then the
    wrong one; this probe names the right one.

Example:
    triton_poi_fused_addmm_relu_0: observed CUDA_ERROR_ILLEGAL_ADDRESS after its launch (grid 16x1x1), expected success

When it is wrong
    Damage that a kernel does without a fault may break a later kernel. A race may disappear when each launch is waited
    for; the report then states this (survived). Work that a library queues inside one operator is attributed to that
    operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.localize.call_timeline import name_of, origin_of
from aotidoctor.model.answers import Launch, Launches, LaunchFailure, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import CallKind, Outcome, Request, Signalled, TimedOut, TracedCall
from aotidoctor.probes.cuda_probe import reason_to_skip, repeat_call
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded
from aotidoctor.probes.symptoms import dead_context_facts, first_fault, recognise

CODE, NAME = "AD-RUN-026", "launch_trace"
FIND = RunFinder(CODE, NAME, __doc__)
NAMING = ("kernel", "extern", "custom", "refused", "library", "hang")
_WHEN = {
    "kernel": "after its launch",
    "extern": "inside it",
    "custom": "inside it",
    "load": "while it is loaded",
    "hang": "while it is waited for",
    "refused": "from its launch",
    "library": "inside it, with all earlier work done and the device working",
}
_LOADING = ("cuModuleLoad", "cuModuleGetFunction")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if a call on CUDA failed and nothing explains it yet."""
    reason = reason_to_skip(case, history)
    if reason is not None:
        return FIND.unchecked(reason)
    return repeat_call(case, history, NAME, "with a synchronisation before each launch", launch_trace=True)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding.

    Failed work (kernel, extern, custom), a refusal by the driver or inside of an operator (refused, library), hang,
    load, under-way, before, not-entered, survived or unavailable.
    """
    seen = parse_answer(Launches, outcome.result)
    if seen.launch_failure is not None:
        return [_first_failing(case, outcome, seen.launch_failure)]
    if seen.launch_problem is not None:
        return [_note("unavailable", outcome, f"not traced: {seen.launch_problem.text or seen.launch_problem.name}")]
    if seen.launch_trace is None:
        return [_note("unavailable", outcome, f"not traced: the run ended in {outcome.stage}")]
    if succeeded(outcome):
        words = f"it returned; {seen.launch_count} calls, each waited for"
        return [_note("survived", outcome, words, Severity.WARN)]
    return [_under_way(case, outcome, seen)]


def _launch(case: Case, entry: Launch) -> tuple[str, str, dict[str, FactValue]]:
    """Name, kind and facts of a computing call of the package, as the child recorded it."""
    call = TracedCall(symbol=entry.symbol, argument=entry.argument or 0, at=0.0)
    name = entry.kernel or name_of(case, call)
    kind = "kernel" if call.kind is CallKind.LAUNCH else call.kind.value
    origin = origin_of(case, name)
    facts: dict[str, FactValue] = {
        "symbol": entry.symbol,
        "kernel": name,
        "operators": origin.operators,
        "where": origin.where,
        "number": entry.number,
        "run": entry.run,
    }
    sizes: dict[str, FactValue] = {"grid": entry.grid, "block": entry.block, "shared": entry.shared}
    facts |= {name: size for name, size in sizes.items() if size is not None}
    return name, kind, facts


def _first_failing(case: Case, outcome: Outcome, failure: LaunchFailure) -> Evidence:
    error = failure.name or str(failure.code)
    text = failure.text or error
    facts: dict[str, FactValue] = {
        "error": error,
        "error_code": failure.code,
        "symptom": recognise(f"CUDA error: {text}").name,
        "stage": outcome.stage,
        **dead_context_facts(outcome),
    }
    entry, following = failure.call, failure.before
    if entry is None:
        observed = f"{error} before the first launch of call {failure.run}"
        return FIND.warn(outcome)("before", None, observed=observed, expected="a working device", facts=facts)
    name, kind, launched = _launch(case, entry)
    later = _launch(case, following)[0] if following is not None else None
    shows = f"; without synchronisation it is reported at {later} or later" if later is not None else ""
    return FIND.error(outcome)(
        kind,
        name,
        observed=f"{error} {_WHEN.get(kind, 'after it')}{_dims(launched)}",
        expected="success",
        message=f"call {launched['run']} of the model: the work of {name} fails first: {text}{shows}",
        facts={**facts, **launched, "surfaces_at": later},
    )


def _under_way(case: Case, outcome: Outcome, seen: Launches) -> Evidence:
    """The finding if everything launched before had succeeded."""
    ending = read_ending(CODE, case, outcome)
    entry = seen.launch_last
    if entry is None:
        return _note("not-entered", outcome, f"{ending.observed} before the first launch")
    (name, own_kind, launched), words = _launch(case, entry), outcome.stderr_tail
    if outcome.error is not None:
        words = f"{outcome.error.message}\n{words}"
    kind = "under-way"
    if launched["symbol"] in _LOADING:
        kind = "load"
    elif isinstance(outcome.ending, TimedOut):
        kind = "hang"
    elif first_fault(outcome) is not None and seen.launch_count is None:
        # It aborted before it could report: all calls before this one had succeeded, so the fault is in this one.
        kind = own_kind
    elif own_kind == "kernel" and "CUDA driver error" in words:
        # The driver calls of a package are checked one by one; an error that torch itself raises has other words.
        kind = "refused"
    elif own_kind != "kernel" and recognise(words).name == "gpu-library" and seen.launch_count is not None:
        # Waiting before and after it brought no error: it is not the fault of a kernel that surfaced here.
        kind = "library"
    sure = kind in NAMING or isinstance(outcome.ending, Signalled)
    return FIND.at(Severity.ERROR if sure else Severity.INFO, outcome)(
        kind,
        name,
        observed=f"{ending.observed}, {_WHEN.get(kind, 'inside it, or inside later work')}{_dims(launched)}",
        expected="success",
        facts={**ending.facts, **launched, "call_kind": own_kind},
    )


def _dims(launched: dict[str, FactValue]) -> str:
    grid, block = launched.get("grid"), launched.get("block")
    if not isinstance(grid, tuple) or not isinstance(block, tuple):
        return ""
    return f" (grid {'x'.join(map(str, grid))}, block {'x'.join(map(str, block))})"


def _note(kind: str, outcome: Outcome, observed: str, severity: Severity = Severity.INFO) -> Evidence:
    return FIND.at(severity, outcome)(kind, None, observed=observed, expected="the kernel that fails first")


PROBE = FIND.probe(plan, read, "when a call on CUDA failed, and neither its words nor the inputs explain it")
