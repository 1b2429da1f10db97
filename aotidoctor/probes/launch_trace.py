"""Which kernel fails first, when the GPU is made to finish before each launch?

What it does
    Repeats the failed call with the package's own calls of the CUDA driver hooked: before each launch and each of
    PyTorch's operators the driver is told to finish (cuCtxSynchronize), and the first result that is not zero is
    written down with the kernel launched before it, its grid and its block. Nothing is compiled again.

Why it matters
    A launch only queues work, so that the error of a kernel comes out at a later call. The kernel that a log shows last
    is the wrong one then; this one is right.

Example:
    triton_poi_fused_addmm_relu_0: observed CUDA_ERROR_ILLEGAL_ADDRESS after its launch (grid 16x1x1), expected success

When it is wrong
    What a kernel damages without a fault may break a later one. A race may be gone when each launch is waited for: then
    it says so (survived). Work that a library queues inside of one operator is that operator's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aotidoctor.localize.origins import origin_of
from aotidoctor.localize.timeline import name_of
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.run import Outcome, Request, Signalled, TimedOut
from aotidoctor.model.trace import CallKind, TracedCall, call_kind
from aotidoctor.probes.cuda import again, why_not
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Probe, evidence, succeeded, unasked
from aotidoctor.probes.symptoms import recognise
from aotidoctor.probes.taint import first_fault, taint_facts

CODE, NAME = "AD-RUN-026", "launch_trace"
NAMING = ("kernel", "extern", "custom", "refused", "library", "hang")
_WHEN = {
    "kernel": "after its launch",
    "extern": "inside of it",
    "custom": "inside of it",
    "load": "while it is loaded",
    "hang": "while it is waited for",
    "refused": "from its launch",
    "library": "inside of it, with everything before it done and the device alive",
}
_LOADING = ("cuModuleLoad", "cuModuleGetFunction")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Asked when a call on CUDA failed and nothing explains it yet."""
    reason = why_not(case, history)
    if reason is not None:
        return unasked(CODE, NAME, reason)
    return again(case, history, NAME, "with a synchronisation before each launch", launch_trace=True)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding.

    Whose work failed (kernel, extern, custom), what was refused by the driver or inside of an operator (refused,
    library), hang, before, survived or unavailable.
    """
    failure, problem = _record(outcome.result.get("launch_failure")), _record(outcome.result.get("launch_problem"))
    if failure is not None:
        return [_first_failing(case, outcome, failure)]
    if problem is not None:
        return [_note("unavailable", outcome, f"not traced: {problem.get('text') or problem.get('name')}")]
    if "launch_trace" not in outcome.result:
        return [_note("unavailable", outcome, f"not traced: the run ended in {outcome.stage}")]
    if succeeded(outcome):
        count = outcome.result.get("launch_count")
        return [_note("survived", outcome, f"it returned; {count} calls, each waited for", Severity.WARN)]
    return [_under_way(case, outcome)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """A computing call of the package, as the child wrote it down."""

    name: str
    kind: str
    facts: dict[str, FactValue]


def _launch(case: Case, entry: JsonObject) -> _Launch:
    symbol = str(entry.get("symbol", ""))
    kernel, argument = entry.get("kernel"), entry.get("argument")
    call = TracedCall(symbol=symbol, argument=argument if isinstance(argument, int) else 0, at=0.0)
    name = str(kernel) if kernel else name_of(case, call)
    kind = "kernel" if call_kind(symbol) is CallKind.LAUNCH else call_kind(symbol).value
    origin = origin_of(case, name)
    facts: dict[str, FactValue] = {
        "symbol": symbol,
        "kernel": name,
        "operators": origin.operators,
        "where": origin.where,
        "number": _number(entry.get("number")),
        "run": _number(entry.get("run")),
    }
    return _Launch(name=name, kind=kind, facts={**facts, **_sizes(entry)})


def _sizes(entry: JsonObject) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    for name in ("grid", "block"):
        numbers = entry.get(name)
        if isinstance(numbers, list):
            facts[name] = tuple(_number(one) for one in numbers)
    if "shared" in entry:
        facts["shared"] = _number(entry["shared"])
    return facts


def _first_failing(case: Case, outcome: Outcome, failure: JsonObject) -> Evidence:
    error = str(failure.get("name") or failure.get("code"))
    text = str(failure.get("text") or error)
    facts: dict[str, FactValue] = {
        "error": error,
        "error_code": _number(failure.get("code")),
        "symptom": recognise(f"CUDA error: {text}").name,
        "stage": outcome.stage,
        **taint_facts(outcome),
    }
    entry, following = _record(failure.get("call")), _record(failure.get("before"))
    if entry is None:
        observed = f"{error} before the first launch of call {failure.get('run')}"
        return evidence(
            CODE, "before", Severity.WARN, outcome, observed=observed, expected="a working device", facts=facts
        )
    launch = _launch(case, entry)
    later = _launch(case, following).name if following is not None else None
    shows = f"; without synchronisation it is reported at {later} or later" if later is not None else ""
    return evidence(
        CODE,
        launch.kind,
        Severity.ERROR,
        outcome,
        subject=launch.name,
        observed=f"{error} {_WHEN.get(launch.kind, 'after it')}{_dims(launch)}",
        expected="success",
        message=f"call {launch.facts['run']} of the model: the work of {launch.name} fails first: {text}{shows}",
        facts={**facts, **launch.facts, "surfaces_at": later},
    )


def _under_way(case: Case, outcome: Outcome) -> Evidence:
    """It failed, and everything launched before had succeeded."""
    ending = read_ending(CODE, case, outcome)
    entry = _record(outcome.result.get("launch_last"))
    if entry is None:
        return _note("not-entered", outcome, f"{ending.observed} before the first launch")
    launch = _launch(case, entry)
    kind = _kind(outcome, entry, launch)
    sure = kind in NAMING or isinstance(outcome.ending, Signalled)
    return evidence(
        CODE,
        kind,
        Severity.ERROR if sure else Severity.INFO,
        outcome,
        subject=launch.name,
        observed=f"{ending.observed}, {_WHEN.get(kind, 'inside of it, or of what follows')}{_dims(launch)}",
        expected="success",
        facts={**ending.facts, **launch.facts, "call_kind": launch.kind},
    )


def _kind(outcome: Outcome, entry: JsonObject, launch: _Launch) -> str:
    if entry.get("symbol") in _LOADING:
        return "load"
    if isinstance(outcome.ending, TimedOut):
        return "hang"
    # It aborted before it could be asked: all calls before this one had succeeded, so the fault is of this one.
    if first_fault(outcome) is not None and "launch_count" not in outcome.result:
        return launch.kind
    words = f"{outcome.error.message if outcome.error is not None else ''}\n{outcome.stderr_tail}"
    # The driver calls of a package are checked one by one; what torch itself raises has other words.
    if launch.kind == "kernel":
        return "refused" if "CUDA driver error" in words else "under-way"
    # Waiting before and after it brought no error: it is not a fault of a kernel that came out here.
    return "library" if recognise(words).name == "gpu-library" and "launch_count" in outcome.result else "under-way"


def _dims(launch: _Launch) -> str:
    grid, block = launch.facts.get("grid"), launch.facts.get("block")
    if not isinstance(grid, tuple) or not isinstance(block, tuple):
        return ""
    return f" (grid {'x'.join(map(str, grid))}, block {'x'.join(map(str, block))})"


def _note(kind: str, outcome: Outcome, observed: str, severity: Severity = Severity.INFO) -> Evidence:
    return evidence(CODE, kind, severity, outcome, observed=observed, expected="the kernel that fails first")


def _record(value: JsonValue) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="which kernel fails first, when each launch is waited for?",
    asked_when="when a call on CUDA failed, and neither its words nor the inputs explain it",
    plan=plan,
    read=read,
)
