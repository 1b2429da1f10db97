"""Which compiled call was running?

What it does
    Repeats a failed call and records every call of the compiled code: kernels, PyTorch's operators, custom operators.
    The entries of the package's own table of function addresses are redirected to small stubs that record the call and
    jump on, so nothing is compiled again, and nothing is lost at a crash.

Why it matters
    A crash has no message, and a hang does not even end. The last call that was entered is the place; the calls before
    it are the timeline of the report.

Example:
    zoo::misbehave: observed SIGSEGV in call 2 of 3, expected the call to return

When it is wrong
    A heap that an earlier call damaged may fail in an innocent one. Packages without such a table of addresses,
    and machines other than x86-64 and aarch64 Linux, cannot be traced: the report says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.localize.call_timeline import last_call
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import CallKind, Exited, Outcome, Request, Signalled, TimedOut
from aotidoctor.model.torch_names import foreign
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.probe import History, RunFinder, succeeded
from aotidoctor.probes.symptoms import recognise

CODE, NAME = "AD-RUN-024", "call_trace"
FIND = RunFinder(CODE, NAME, __doc__)
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
_IN_CALL = ("run", "scan", "unload", "done")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if the call failed and no comparison of the inputs explains it."""
    plain = history.plain
    if plain is None or case.inputs is None:
        return FIND.unchecked("the package was not called")
    if succeeded(plain) and not case.options.localize:
        return FIND.unchecked("the call returned")
    if not succeeded(plain) and not plain.stage.startswith(_IN_CALL):
        return FIND.unchecked(f"it failed in {plain.stage}, before any compiled call")
    if device_of(case) == "cuda" and not succeeded(plain):
        return FIND.unchecked("launches are asynchronous, so the last call is not evidence: see launch_trace")
    if isinstance(plain.ending, Signalled) and plain.ending.name in _FROM_OUTSIDE:
        return FIND.unchecked(f"{plain.ending.name} comes from outside")
    if history.static_errors() and not case.options.localize:
        return FIND.unchecked("a static finding already explains it; its treatment is tried instead")
    calls = 1 if plain.stage == "run1" else 2
    return run_request(case, NAME, "with every compiled call recorded", trace=True, observe=(), calls=calls)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: kernel, extern, custom or runtime (the call it ended in), survived, not-entered or unavailable."""
    trace = outcome.trace
    if trace is None or trace.problem is not None:
        why = trace.problem if trace is not None and trace.problem else f"the run ended in {outcome.stage}"
        return [_note("unavailable", outcome, f"not traced: {why}")]
    if succeeded(outcome):
        return [_note("survived", outcome, f"it returned; {trace.total} calls were traced")]
    last = last_call(case, trace, raised=outcome.error is not None)
    if last is None:
        return [_note("not-entered", outcome, "it failed before the first compiled call of the model")]
    ended, facts = _ending(outcome)
    facts |= {
        "symbol": last.call.symbol,
        "call": last.name,
        "run": last.run,
        "after": last.after,
        "operators": last.origin.operators,
        "where": last.origin.where,
        "stage": outcome.stage,
    }
    kind = "kernel" if last.call.kind is CallKind.LAUNCH else last.call.kind.value
    if kind == "custom" and not foreign([last.name]):
        kind = "extern"  # an operator of torch itself that has no C function of its own
    if kind in ("kernel", "extern") and recognise(outcome.stderr_tail).name == "heap-corruption":
        # It allocated or freed memory, and the allocator found the damage of another call.
        kind = "runtime"
    after = f" after {last.after}" if last.after is not None else ""
    return [
        FIND.at(Severity.INFO if kind == "runtime" else Severity.ERROR, outcome)(
            kind,
            last.name,
            observed=f"{ended} in {last.name}{after}",
            expected="the call to return",
            message=f"call {last.run} of the model: {ended} in {last.name}{after}",
            facts=facts,
        )
    ]


def _note(kind: str, outcome: Outcome, observed: str) -> Evidence:
    return FIND.info(outcome)(kind, None, observed=observed, expected="the call it failed in")


def _ending(outcome: Outcome) -> tuple[str, dict[str, FactValue]]:
    match outcome.ending:
        case Signalled(name=name):
            return name, {"ending": "signalled", "signal": name}
        case TimedOut(limit=limit):
            return f"no end within {limit:.3g} s", {"ending": "timed-out"}
        case Exited(code=code):
            if outcome.error is not None:
                symptom = recognise(outcome.error.message)
                error = outcome.error.type
                return error, {"ending": "raised", "type": error, "line": symptom.line, "symptom": symptom.name}
            return f"exit status {code}", {"ending": "exited", "exit_code": code}
        case _:
            return "the end", {"ending": "other"}


PROBE = FIND.probe(plan, read, "when the call failed and no comparison of the inputs explains it")
