"""Waiting for what must come: long enough for any machine, as nothing is said here of how soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

LONGEST_S = 60.0


def soon(holds: Callable[[], object]) -> bool:
    """Whether it holds, now or later."""
    deadline = time.monotonic() + LONGEST_S
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def is_alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    return not state(pid).startswith(("Z", "X", "gone"))


def outlived(*pids: int) -> dict[int, str]:
    """Those of the processes that do not end, with what they are doing."""
    soon(lambda: not any(map(is_alive, pids)))
    return {pid: state(pid) for pid in pids if is_alive(pid)}


def state(pid: int) -> str:
    """The state of the process as ``ps`` names it, its parent and its name; ``gone`` where there is none."""
    try:
        name, after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[::2]
    except OSError:
        return "gone"
    return f"{after.split()[0]}, of {after.split()[1]}: {name})"
