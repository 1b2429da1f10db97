"""Wall clock, processor time and memory of a command with all its descendants.

Memory is the sum of the proportional set sizes (``Pss``: a page that several processes share counts once), looked at
some forty times a second; its peak is what the machine has to have. Looking costs time, so time and memory are measured
in runs of their own.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_EVERY = 0.025
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of wall clock, seconds of processor time (user and system, with children), exit status."""

    wall: float
    cpu: float
    status: int
    stdout: bytes


def timed(command: Sequence[str], environ: dict[str, str]) -> Spent:
    """Run ``command`` to its end."""
    before, began = _children_cpu(), time.monotonic()
    done = subprocess.run(command, capture_output=True, check=False, env=environ)
    return Spent(
        wall=time.monotonic() - began, cpu=_children_cpu() - before, status=done.returncode, stdout=done.stdout
    )


def peak_memory(command: Sequence[str], environ: dict[str, str]) -> int:
    """Bytes that ``command`` and its descendants had at most, together."""
    # Processes whose parent ends stay ours, and are found.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    peak = 0
    others = set(_descendants(os.getpid()))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
    while process.poll() is None:
        peak = max(peak, sum(_pss(pid) for pid in _descendants(os.getpid()) if pid not in others))
        time.sleep(_EVERY)
    return peak


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for path in Path(f"/proc/{pid}/task").iterdir():
            for child in (path / "children").read_text().split():
                found += [int(child), *_descendants(int(child))]
    return found


def _pss(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
