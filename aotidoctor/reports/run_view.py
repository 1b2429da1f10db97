"""How child runs ended, in the words of every format for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports.text import one_line, seconds


def outcome_failed(outcome: Outcome) -> bool:
    """True unless the child ended by itself with its done-marker and without an exception."""
    match outcome.ending:
        case Exited(code=0, done=True):
            return outcome.error is not None
        case _:
            return True


def first_failed(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The first run that failed."""
    return next(filter(outcome_failed, outcomes), None)


def ending_text(ending: Ending) -> str:
    """How a child ended, in a few words."""
    match ending:
        case Exited(code=0, done=True):
            return "ok"
        case Exited(code=code, done=done):
            return f"exit {code}" + ("" if done else " without a result")
        case Signalled(name=name, core_dumped=core):
            return name + (", core dumped" if core else "")
        case TimedOut(limit=limit):
            return f"no end within {seconds(limit)}"
        case OutOfMemory(reason=reason):
            return f"out of memory ({one_line(reason, 80)})"
        case NotStarted(reason=reason):
            return f"not started ({one_line(reason, 80)})"


def run_ending(outcome: Outcome) -> str:
    """``ending_text``, or ``raised Type`` when the worker caught an exception."""
    if outcome.error is not None:
        return f"raised {one_line(outcome.error.type, 60)}"
    if outcome.request.job == "watch" and isinstance(outcome.ending, Exited):
        # A program of the user's knows nothing of done-markers.
        return f"exit {outcome.ending.code}" if outcome.ending.code else "ok"
    return ending_text(outcome.ending)


def took_effect(outcome: Outcome) -> str:
    """``yes``, ``no`` or ``unknown`` where the run changed a setting; empty where it changed none."""
    if outcome.took_effect is None:
        return "unknown" if outcome.request.env else ""
    return "yes" if outcome.took_effect else "no"


def env_text(env: Mapping[str, str | None]) -> str:
    """Changes of the environment as a shell writes them."""
    return " ".join(
        f"{name}={shlex.quote(value)}" if value is not None else f"-u {name}" for name, value in env.items()
    )


def last_words(outcome: Outcome) -> str:
    """The exception, or the last line that was printed."""
    if outcome.error is not None:
        return one_line(f"{outcome.error.type}: {outcome.error.message}")
    return one_line((outcome.stderr_tail.strip().splitlines() or [""])[-1])
