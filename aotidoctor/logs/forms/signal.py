"""How a process ended, as shells, launchers and CI systems tell it. It says that something failed, not what."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, lines_found
from aotidoctor.logs.line import Line

START = re.compile(
    r"Segmentation fault|\bAborted\b|Abort trap|Bus error|Illegal instruction|Floating point exception|core dumped|"
    r"^(?:.*: line \d+: +\d+ )?Killed\b"
    r"(?! (?:\w+ ){0,3}(?:process(?:es)?|jobs?|workers?|sessions?|servers?|containers?)\b)"
    r"|exit(?:ed)? (?:with )?(?:exit )?(?:code|status)\b|[Ee]xit ?code|"
    r"OOMKilled|died with <Signals|SIG(?:SEGV|ABRT|KILL|BUS|ILL|"
    r"FPE|TERM)\b|signal: |[Tt]erminated by signal|\b[Ss]ignal:? (?:Some\()?\d+"
)
# In the words of the C library, which many programs print.
SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
}
# Words of a signal; its number, as programs name it that know no more; its name.
_SIGNALS = (
    (r"Segmentation fault|SIGSEGV|\b(?:code|status):? ?(?:139|-11)\b|exitcode: ?-11|Signals\.SIGSEGV", 11, "SIGSEGV"),
    (r"\bAborted\b|Abort trap|SIGABRT|\b(?:code|status):? ?(?:134|-6)\b|exitcode: ?-6\b", 6, "SIGABRT"),
    (r"Illegal instruction|SIGILL|\b(?:code|status):? ?(?:132|-4)\b|exitcode: ?-4\b", 4, "SIGILL"),
    (r"Bus error|SIGBUS|\b(?:code|status):? ?(?:135|-7)\b", 7, "SIGBUS"),
    (r"Floating point exception|SIGFPE|\b(?:code|status):? ?(?:136|-8)\b", 8, "SIGFPE"),
    (r"\bKilled\b|SIGKILL|OOMKilled|\b(?:code|status):? ?(?:137|-9)\b|exitcode: ?-9\b|signal: killed", 9, "SIGKILL"),
)
_NAMES = (
    *((re.compile(rf"{words}|[Ss]ignal:? (?:Some\()?{number}\b(?! ?dB)"), name) for words, number, name in _SIGNALS),
    (re.compile(r"SIGTERM|\b(?:code|status):? ?143\b"), "SIGTERM"),
    (re.compile(r"exit(?:ed)? (?:with )?(?:exit )?(?:code|status)?:? ?[1-9]\d*|exit ?code:? ?[1-9]"), "exit"),
)


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The ending; None for one without a failure (exit code 0)."""
    text = lines[at].text
    kind = next((name for words, name in _NAMES if words.search(text)), None)
    if kind is None:
        return None
    return lines_found(lines, at, at + 1, form="signal", kind=kind, follows=True)
