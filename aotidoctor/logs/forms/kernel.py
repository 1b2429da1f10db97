"""The kernel's own words (``dmesg``): segfaults, traps, the OOM killer, the NVIDIA driver's Xid."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, lines_found
from aotidoctor.logs.line import Line

START = re.compile(
    r"segfault at |trap invalid opcode|traps: |general protection|Out of memory: Kill|oom-kill:|oom_reaper|"
    r"Memory cgroup out of memory|NVRM: Xid|NVRM: .{0,200}(?:fail|error|mismatch)|invoked oom-killer"
)
_KINDS = (
    (re.compile(r"segfault at |general protection"), "SIGSEGV"),
    (re.compile(r"trap invalid opcode"), "SIGILL"),
    (re.compile(r"trap divide error"), "SIGFPE"),
    (re.compile(r"[Oo]ut of memory: Kill|oom-kill:|invoked oom-killer|Memory cgroup out"), "oom"),
    (re.compile(r"NVRM: Xid"), "Xid"),
)


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The kernel's line."""
    text = lines[at].text
    kind = next((name for words, name in _KINDS if words.search(text)), "")
    follows = "oom_reaper" in text
    return lines_found(lines, at, at + 1, form="kernel", kind=kind, follows=follows)
