"""The child's side of a debugger: allow it, tell it the process number, wait until it is there."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from aotidoctor.worker.channel import Channel

_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)
# The parent gives up sooner, and says so; this is for a parent that is stopped.
_WAIT_S = 20.0


def allow_debugger() -> None:
    """Let any process of this user look at this one: with Yama only a parent may, and gdb is a sibling."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)


def tell_process(run_dir: Path) -> None:
    """Write down the number of this process: the parent may have started a script that started it."""
    _write(run_dir, "pid")


def wait_for_debugger(channel: Channel) -> None:
    """Stage ``attach``: go on when this process is traced, or when the parent says that it will not be."""
    channel.enter("attach")
    _write(channel.run_dir, "attach")
    refused = channel.run_dir / "no_debugger"
    deadline = time.monotonic() + _WAIT_S
    while not _is_traced() and not refused.exists() and time.monotonic() < deadline:
        time.sleep(0.005)


def _is_traced() -> bool:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status.splitlines())


def _write(run_dir: Path, name: str) -> None:
    """All of the file or nothing of it: the parent may be reading."""
    made = run_dir / f"{name}.new"
    made.write_text(str(os.getpid()), encoding="ascii")
    made.rename(run_dir / name)
