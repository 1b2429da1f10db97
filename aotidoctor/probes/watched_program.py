"""How did the program that loads the package end (watch, guard)?

What it does
    Reads the end of a program that ran unchanged: its exit status or signal, the exception in its output (the last line
    of a Python traceback, the message of the C++ runtime at termination), and its progress: whether it mapped code of a
    package. With --rerun the same command is run again under diagnostic environment settings, and each of these runs is
    read in the same way.

Why it matters
    This is the failure as it happens in production, in a program whose functions cannot be called separately. Its
    behaviour under different settings shows where to look, without a change to the program.

Example:
    ./server: observed SIGABRT after std::runtime_error, expected exit status 0

When it is wrong
    A program may catch an exception, log it and end for a different reason. Exit statuses of 128 and above mostly come
    from a child process and are passed on by a shell. A rerun gets no input: a program that waits for input then
    behaves differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import ChildError, Exited, Outcome, Signalled
from aotidoctor.probes.plain_run import custom_ops, ending_of
from aotidoctor.probes.probe import History, RunFinder
from aotidoctor.probes.symptoms import recognise

CODE, NAME = "AD-RUN-033", "watched_program"
FIND = RunFinder(CODE, NAME, __doc__)
_ABORTS = "SIGABRT"
_HIGHEST_SIGNAL = 64
# The last output of Python and the C++ runtime, with the lines of the message.
_MARKS = ("Traceback (most recent call last):\n", "terminate called after throwing an instance of '")
_TERMINATE = re.compile(
    r"terminate called after throwing an instance of '(?P<type>[^'\n]+)'"
    r"(?:\s+what\(\):\s+(?P<what>.*(?:\n.*){0,40}))?"
)
_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+"
    r"(?P<type>[A-Za-z_][\w.]*)(?:: (?P<what>.*(?:\n.*){0,40}))?"
)


def plan(case: Case, history: History) -> NotChecked:
    """Plan no run: ``watch`` and ``guard`` already have the program."""
    return FIND.unchecked("this probe is for aotidoctor watch and aotidoctor.guard()")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: ok, raised, exited, signalled, timed-out, out-of-memory or not-started."""
    kind, observed, facts = _ending(outcome)
    good = kind == "ok"
    symptom = recognise(outcome.error.message if outcome.error is not None else "")
    facts |= {"stage": outcome.stage, **custom_ops(case)}
    if outcome.error is not None:
        facts |= {"type": outcome.error.type, "symptom": symptom.name, "line": symptom.line, **symptom.facts}
    program = PurePosixPath(outcome.argv[0]).name if outcome.argv else "the program"
    return [
        FIND.at(Severity.INFO if good else Severity.ERROR, outcome, "stderr")(
            kind,
            program,
            observed=observed,
            expected="no exception" if isinstance(outcome.ending, Exited) and outcome.ending.done else "exit status 0",
            message=f"{program}: {observed}" + (f": {symptom.line}" if symptom.line else ""),
            facts=facts,
        )
    ]


def last_exception(text: str) -> ChildError | None:
    """The exception that ended a program: the last one in its output; None without any."""
    starts = [at for mark in _MARKS if (at := text.rfind(mark)) >= 0]
    last = next(
        (
            found
            for at in sorted(starts, reverse=True)
            if (found := (_TRACEBACK.match(text, at) or _TERMINATE.match(text, at))) is not None
        ),
        None,
    )
    if last is None:
        return None
    lines = (last["what"] or "").rstrip().splitlines()
    # A message ends before the next traceback, and before what a shell or the interpreter adds.
    message: list[str] = []
    for line in lines:
        if line.startswith(("Traceback (", "During handling", "The above exception", "Fatal Python error")):
            break
        message.append(line)
    while message and not message[-1].strip():
        message.pop()
    return ChildError(type=last["type"], message="\n".join(message), traceback=last[0].rstrip())


def _ending(outcome: Outcome) -> tuple[str, str, dict[str, FactValue]]:
    after = f" after {outcome.error.type}" if outcome.error is not None else ""
    match outcome.ending:
        case Exited(done=True) if outcome.error is not None:
            return "raised", f"{outcome.error.type} left the guarded block", {}
        case Exited(code=0):
            return "ok", "exit status 0", {"exit_code": 0}
        case Exited(code=code):
            child = code - 128 if 128 < code <= 128 + _HIGHEST_SIGNAL else None
            passed_on = f" (a child of it was killed by signal {child})" if child and not after else ""
            kind = "raised" if after else "exited"
            known: dict[str, FactValue] = {"exit_code": code, "child_signal": child, "symptom": f"exit-status-{code}"}
            return kind, f"exit status {code}{after}{passed_on}", known
        case Signalled(name=name, signal=number):
            if after and name == _ABORTS:
                # The exception is the failure; it ended the program because nothing caught it.
                return "raised", f"{name}{after}", {"ended_by": name}
            return "signalled", f"{name}{after}", {"signal": name, "number": number}
        case _:
            return ending_of(outcome)


PROBE = FIND.probe(plan, read, "only by aotidoctor watch and aotidoctor.guard()")
