"""How much a failure weighs by the way it is told: as an error, as a warning that was handled, or as news."""

from __future__ import annotations

import re

from aotidoctor.logs.found import Found
from aotidoctor.logs.line import Line

# What autotuning says of a candidate that it leaves out.
_ROUTINE = re.compile(r"(?:for|of) benchmark choice|ignoring this choice")
# What looks for an optional library tells that it found none, and goes on.
_PROBES = re.compile(
    r"\bNCCL INFO\b|(?i:\b(?:skipp(?:ing|ed)|skip) (?:the )?(?:import|load|regist)|\boptional\b|\bfall(?:ing|s)? back\b"
    r"|\b(?:ignor(?:ing|ed)|prob(?:ing|ed))\b|\bwill (?:be disabled|not be (?:available|used))\b)"
)
# What a library warns of that the program may do without.
_OPTIONAL = "you can ignore this warning"
# How a line begins that is the failure itself, whatever level it was logged at.
_BEGINS = re.compile(
    r"(?:[\w.:]*(?:Error|Exception|Interrupt)\b|(?i:error|fatal|failed|terminate called)\b|[A-Z]{3,12} FAIL)"
)


# A record that says no more than that.
_BARE = re.compile(r"(?P<level>(?:ERROR|FATAL|CRITICAL):? )?[\w ]{1,40}\b(?:failed|aborting|giving up)\W{0,3}$")


def is_bare(found: Found, head: Line) -> bool:
    """Whether a logger says that something failed, and nothing else: there is nothing in it to tell a cause by."""
    bare = _BARE.match(found.text) if found.form == "line" else None
    return bare is not None and (head.stamped or bare["level"] is not None)


def is_warning(found: Found, head: Line) -> bool:
    """Whether it was handled: a candidate left out, an optional library, an exception logged as a warning."""
    if _ROUTINE.search(found.text) is not None:
        return True
    if is_probe(found, head):
        return True
    # What a logger was told to print of an exception as a warning was handled.
    return head.level == "warning" and (found.form in ("line", "loader") or (found.form == "python" and head.stamped))


def is_probe(found: Found, head: Line) -> bool:
    """Whether a library was looked for that the program can do without."""
    return found.form == "loader" and (head.level == "info" or _PROBES.search(found.text) is not None)


def is_mention(found: Found, head: Line) -> bool:
    """News that speak of a failure: an error that was expected, tried again, or is only a word of an option."""
    if (found.form == "loader" and "NCCL INFO" in found.text) or _OPTIONAL in found.text:
        return True
    return head.level == "info" and found.form == "line" and _BEGINS.match(found.text) is None
