"""Which native function crashed or hung?

What it does
    For a crash, repeats the run with gdb attached and reads the stack at the fatal signal: function, library, the line
    in the sources inside the package, and what the address of a memory fault points to. For a run that had to be
    stopped, reads the stacks that gdb (or py-spy) took at that moment, and the state of its threads in /proc.

Why it matters
    A signal does not name a function. The stack distinguishes the package's own kernel from a custom operator that it
    called and from PyTorch's libraries.

Example:
    zoo::misbehave: observed SIGSEGV in misbehave(at::Tensor const&), called at wrapper.cpp:825, expected no failure

When it is wrong
    Memory that was overwritten earlier crashes innocent code later: the frame shows where the crash happened, not
    always what caused it. A crash that depends on timing may not occur under a debugger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.culprit import (
    KERNEL,
    OPERATOR,
    RUNTIME,
    UNKNOWN,
    Culprit,
    base_name,
    called_operator,
    classify_hang,
    culprit,
    package_files,
    with_sources,
)
from aotidoctor.localize.debugger_output import StopReason, operator_frame, read_backtrace
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.localization import Frame
from aotidoctor.model.run import Outcome, Request, Signalled, TimedOut
from aotidoctor.probes import blame
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import CODE as RUN
from aotidoctor.probes.plain_run import custom_ops
from aotidoctor.probes.probe import STATIC, History, Reuse, RunFinder

CODE, NAME = "AD-RUN-023", "backtrace"
FIND = RunFinder(CODE, NAME, __doc__)
INSTALL = "gdb is not installed; apt-get install gdb"
# Sent from outside, to a process that did nothing wrong at that moment.
SENT = ("SIGKILL", "SIGTERM")
# Stages before the package is examined.
EARLY = ("start", "import", "attach", "setup", "inputs")
EXPLAINING = (*STATIC, "AD-RUN-003")
# The same signal again, in the run of another probe.
SAME = ("signalled",)


def plan(case: Case, history: History) -> Request | Reuse | NotChecked:
    """Plan a run for a signal that neither evidence nor its message explains; reuse a plain run that was stopped."""
    failed = next((item for item in history.errors("AD-RUN-001") if item.kind in ("signalled", "timed-out")), None)
    if failed is None or failed.facts.get("stage") in EARLY or failed.facts.get("signal") in SENT:
        return FIND.unchecked("the plain run did not crash in the package and did not hang")
    if failed.kind == "timed-out":
        return Reuse(probe="plain_run")
    explaining = [item for item in history.errors(*EXPLAINING) if item.kind not in SAME]
    if explaining:
        return FIND.unchecked(f"{explaining[0].code} explains the signal")
    checks = [item for item in history.findings if item.facts.get("check_line") is not None]
    if checks and failed.facts.get("signal") == "SIGABRT":
        return FIND.unchecked("the check that ended the run is known by its message")
    if case.host.tools.get("gdb", "") is None:
        return FIND.unchecked(INSTALL, moot=False)
    return replace(run_request(case, NAME, "under a debugger"), debugger=True)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: crash, hang, none (it did not fail this time), or unavailable; and the check that aborted."""
    trace = read_backtrace(outcome.debugger_output)
    match outcome.ending:
        case TimedOut():
            hang = classify_hang(trace, package_files(case.model))
            # Python frames show an operator in Python, even without a debugger.
            if hang.culprit is not None:
                hang = replace(hang, culprit=_with_python(hang.culprit, outcome))
            elif outcome.stage.startswith("run") and (named := operator_frame(outcome.stderr_tail)) is not None:
                hang = replace(hang, where=OPERATOR, culprit=Culprit(where=OPERATOR, frame=named, proved=True))
            frames = with_sources(hang.frames, case.model)
            found = hang.culprit or Culprit(where=UNKNOWN)
            facts = _facts(case, outcome, found, frames) | {"where": hang.where, "state": hang.state}
            known = hang.where is not None and found.frame is not None
            place = _place(facts) if known else "no identifiable place"
            return [
                FIND.at(Severity.ERROR if known else Severity.INFO, outcome, "stderr")(
                    "hang",
                    _subject(facts) if known else None,
                    observed=f"stands in {place}" + (f", {hang.state}" if hang.state else ""),
                    expected="a return",
                    facts=facts,
                )
            ]
        case Signalled() if trace.stop is not None:
            crash = _crash(case, outcome, trace.stop)
            known = history.has(blame.CODE) or any(item.facts.get("symptom") != "other" for item in history.errors(RUN))
            return [crash] if known else [crash, *blame.lost_check(case, crash, outcome)]
        case _:
            kind, observed = "none", "it did not fail under a debugger"
            if outcome.debugger_problem is not None:
                kind, observed = "unavailable", outcome.debugger_problem
            elif isinstance(outcome.ending, Signalled):
                kind, observed = "unavailable", "gdb printed no stack"
            return [FIND.info(outcome)(kind, None, observed=observed, expected="a native stack")]


def _crash(case: Case, outcome: Outcome, stop: StopReason) -> Evidence:
    frames = with_sources(stop.frames, case.model)
    found = _with_python(culprit(frames, package_files(case.model)), outcome)
    facts = _facts(case, outcome, found, frames)
    facts |= {
        "signal": stop.signal,
        "fault_address": hex(stop.address) if stop.address is not None else None,
        "fault_target": stop.target,
        "instruction": stop.instruction,
    }
    at = f" at {facts['fault_address']} ({stop.target})" if stop.target else ""
    return FIND.error(outcome, "stderr")(
        "crash", _subject(facts), observed=f"{stop.signal} in {_place(facts)}{at}", expected="no failure", facts=facts
    )


def _with_python(found: Culprit, outcome: Outcome) -> Culprit:
    """The culprit with the Python frame of an operator in Python: in C there is only the interpreter."""
    named = operator_frame(outcome.stderr_tail) if found.where == OPERATOR and found.library is None else None
    return found if named is None else replace(found, frame=named)


def _facts(case: Case, outcome: Outcome, found: Culprit, frames: Sequence[Frame]) -> dict[str, FactValue]:
    frame = with_sources((found.frame,), case.model)[0] if found.frame is not None else None
    if frame is not None and frame.member is None and found.where not in (KERNEL, RUNTIME):
        frame = next((one for one in frames if one.member is not None), None)
    # A source file that is not in the package: of an operator that was compiled with debug information.
    here, file = found.frame, None
    outside = frame is None or frame.member is None or here is None or frame.file != here.file
    if here is not None and here.file is not None and here.line is not None and outside:
        file = f"{here.file}:{here.line}"
    ops = custom_ops(case)
    op = called_operator(frames, case.model) or ops["custom_op"] if found.where == OPERATOR else None
    return {
        "where": found.where,
        "function": found.frame.function if found.frame is not None else None,
        "library": found.library,
        "file": file,
        "member": frame.member if frame is not None else None,
        "line": frame.line if frame is not None and frame.member is not None else None,
        "source": (
            next((line.text.strip() for line in frame.lines if line.marked), None) if frame is not None else None
        ),
        "kernel": found.kernel,
        "op": op,
        "inside": "operator" if op is not None else None,
        "proved": found.proved,
        "stage": outcome.stage,
        "has_custom_ops": ops["has_custom_ops"],
    }


def _subject(facts: dict[str, FactValue]) -> str | None:
    return next((str(facts[key]) for key in ("kernel", "op", "function") if facts[key]), None)


def _place(facts: dict[str, FactValue]) -> str:
    """The function, and the line of the package that it is at or was called from."""
    function = facts["function"] or "an unknown function"
    if facts["member"] is None:
        return f"{function}"
    by = "at" if facts["where"] in (KERNEL, RUNTIME) else "called at"
    return f"{function}, {by} {base_name(str(facts['member']))}:{facts['line']}"


def left_out(outcome: Outcome) -> list[NotChecked]:
    """Why the debugger could not do its work."""
    problem = outcome.debugger_problem
    return [FIND.unchecked(problem, moot=False)] if problem is not None else []


_WHEN = "for an unexplained signal, and for a run that had to be stopped (no further run)"
PROBE = replace(FIND.probe(plan, read, _WHEN), left_out=left_out)
