"""Cleans up after a parent that was killed, whatever its children do: a process of its own that needs nobody's help.

The warm worker cleans up itself when its parent is gone, unless a child of it has stopped or traces it. So it forks
this process before it does anything else. It waits for the end of the parent, gives the warm worker a moment, and then
kills it, kills what carries the marker of a run, and removes the files.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from aotidoctor.model.child_protocol import MARKER

_GRACE_S, _LOOK_S = 1.0, 0.25
_ROUNDS = 5


def start(link: int, work_dir: str) -> None:
    """Fork the process, as nobody's child. ``link`` is the descriptor that it must not keep open."""
    parent, worker = os.getppid(), os.getpid()
    between = os.fork()
    if between == 0:
        with suppress(BaseException):
            if os.fork() == 0:
                os.close(link)
                _leave_everything()
                _watch(parent, worker, Path(work_dir))
        os._exit(0)
    os.waitpid(between, 0)


def _leave_everything() -> None:
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)


def _watch(parent: int, worker: int, work_dir: Path) -> None:
    parent_ended, worker_ended = _end_of(parent), _end_of(worker)
    while not parent_ended(_LOOK_S):
        # The parent has ended the worker and tidied up.
        if not work_dir.exists():
            return
    worker_ended(_GRACE_S)
    if not work_dir.exists():
        return
    with suppress(OSError):
        if not worker_ended(0):
            os.kill(worker, signal.SIGKILL)
    _kill_marked(work_dir)
    for run in work_dir.glob("R*-*/request.json"):
        _remove_foreign(run, work_dir)
    shutil.rmtree(work_dir, ignore_errors=True)


def _end_of(pid: int) -> Callable[[float], bool]:
    """A function that waits at most so many seconds for the end of ``pid``, and returns whether it has ended."""
    try:
        poll = select.poll()
        poll.register(os.pidfd_open(pid), select.POLLIN)
    except ProcessLookupError:
        return lambda _seconds: True
    except (OSError, AttributeError):
        return lambda seconds: _ended_by_looking(pid, seconds)
    return lambda seconds: bool(poll.poll(seconds * 1000))


def _ended_by_looking(pid: int, seconds: float) -> bool:
    """The same on kernels without pidfd."""
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def _kill_marked(work_dir: Path) -> None:
    tokens = {f"{MARKER}={run.name.rpartition('-')[2]}".encode() for run in work_dir.glob("R*-*")}
    for _ in range(_ROUNDS):
        found = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _environ(entry) & tokens]
        for entry in found:
            with suppress(OSError):
                os.kill(int(entry.name), signal.SIGKILL)
        if not found:
            return
        time.sleep(0.01)


def _environ(entry: Path) -> set[bytes]:
    with suppress(OSError):
        return set((entry / "environ").read_bytes().split(b"\0"))
    return set()


def _remove_foreign(request: Path, work_dir: Path) -> None:
    """The folder that a run had in a TMPDIR of the user's own."""
    import json

    with suppress(OSError, ValueError, KeyError, TypeError):
        folder = Path(json.loads(request.read_text(encoding="utf-8"))["env"]["TMPDIR"])
        token = request.parent.name.rpartition("-")[2]
        if folder.name.endswith(token) and work_dir not in folder.parents:
            shutil.rmtree(folder, ignore_errors=True)
