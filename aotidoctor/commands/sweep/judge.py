"""What contract, package and program say of one call, and what that means together."""

from __future__ import annotations

from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Severity
from aotidoctor.model.run import Exited, Outcome, TimedOut
from aotidoctor.model.sweep import Does, Judged, Says
from aotidoctor.probes.plain_run import read_ending, swallowed
from aotidoctor.probes.probe import succeeded
from aotidoctor.probes.results import reference
from aotidoctor.triage.session import Session, run_checks

_RANGE = "AD-IN-017"
_INPUTS = "AD-IN-"
_WORDS = 200


def says(case: Case, *, silent: bool) -> tuple[Says, str | None]:
    """What the contract says of the inputs of ``case``, and the cause for which it refuses them.

    ``silent``: it is asked about values, of which it says nothing.
    """
    session = Session(case=case, runner=None)
    run_checks(session)
    found = [item for item in session.findings if item.code.startswith(_INPUTS)]
    errors = [item for item in found if item.severity is Severity.ERROR]
    if errors:
        from aotidoctor.checks import CHECKS  # noqa: PLC0415 - the table of all of them

        return Says.REFUSES, next((check.cause for check in CHECKS if check.code == errors[0].code), None)
    if any(item.code == _RANGE for item in found):
        return Says.RANGE, "input-range"
    return (Says.SILENT if silent else Says.ACCEPTS), None


def package_does(case: Case, outcome: Outcome) -> tuple[Does, str]:
    """What the package did, and its words where it failed."""
    called = outcome.result.get("outputs")
    returned = isinstance(called, list) and bool(called)
    if not returned:
        return _failed(case, outcome)
    if (raised := swallowed(case, outcome)) is not None:
        return Does.ERROR, _short(str(raised.facts["line"]))
    if reference(outcome).get("outputs") is None:
        return Does.RETURNS, ""
    wrong = [item for item in read_comparison(outcome) if item.verdict not in FINE]
    if not wrong:
        return Does.RIGHT, ""
    first = wrong[0]
    shown = f"{first.path}: {first.verdict}"
    return Does.WRONG, shown + (f", max |difference| {first.max_abs:g}" if first.max_abs is not None else "")


def _failed(case: Case, outcome: Outcome) -> tuple[Does, str]:
    if isinstance(outcome.ending, TimedOut):
        return Does.HANG, f"no end within {outcome.ending.limit:g} s"
    if outcome.error is not None or (isinstance(outcome.ending, Exited) and outcome.ending.done):
        return Does.ERROR, _short(_words(case, outcome))
    return Does.CRASH, _short(read_ending("AD-RUN-001", case, outcome).observed)


def _words(case: Case, outcome: Outcome) -> str:
    """The message of the exception; where it has only a call that failed, the reason that stderr gives."""
    if outcome.error is None:
        return "no outputs"
    line = str(read_ending("AD-RUN-001", case, outcome).facts["line"])
    message = f"{outcome.error.type}: {outcome.error.message}"
    return outcome.error.message if not line or line in message else line


def program_does(outcome: Outcome) -> tuple[Does, str]:
    """What the program did with the same inputs."""
    found = reference(outcome)
    if found.get("error"):
        return Does.ERROR, _short(str(found["error"]))
    if found.get("outputs") is not None:
        return Does.RIGHT, ""
    if found.get("unavailable"):
        return Does.UNKNOWN, _short(str(found["unavailable"]))
    if outcome.request.job == "reference" and not succeeded(outcome):
        return Does.ERROR, _short(outcome.error.message if outcome.error is not None else "it crashed")
    return Does.UNKNOWN, ""


def judge(told: Says, package: Does, program: Does) -> Judged:
    """What a row means."""
    failed = package in (Does.ERROR, Does.CRASH, Does.HANG)
    if package is Does.WRONG or (package in (Does.CRASH, Does.HANG) and program is not Does.UNKNOWN):
        right = program is Does.RIGHT and told is Says.ACCEPTS
        return Judged.FAULT if right else Judged.UNGUARDED
    if program is Does.UNKNOWN:
        return Judged.FAULT if failed and told is Says.ACCEPTS else _alone(told, package)
    if failed:
        if program is not Does.RIGHT:
            return Judged.FINE
        return Judged.FAULT if told is Says.ACCEPTS else Judged.REFUSED
    if program is Does.ERROR:
        # The program refuses what the package computes: nobody can tell whether that is right.
        return Judged.UNGUARDED if told is Says.REFUSES else Judged.UNKNOWN
    return Judged.HARMLESS if told in (Says.REFUSES, Says.RANGE) else Judged.FINE


def _alone(told: Says, package: Does) -> Judged:
    """Without a program: what the contract refuses, and the package takes or crashes on, is unguarded."""
    if package in (Does.CRASH, Does.HANG) or (told is Says.REFUSES and package is Does.RETURNS):
        return Judged.UNGUARDED
    return Judged.FINE if told is Says.ACCEPTS or package is Does.ERROR else Judged.UNKNOWN


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _WORDS else f"{words[:_WORDS]}…"
