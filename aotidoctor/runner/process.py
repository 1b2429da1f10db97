"""Wait for a process that may be a child of somebody else, and kill it with all that it started."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aotidoctor.model.child_protocol import MARKER
from aotidoctor.runner.proc_files import has_ended, link, read

# A process in the middle of execve shows no environment: that much later, on a busy machine too, it does.
_LOOKS = 10


class Watch:
    """Waits for the end of process ``pid`` without reaping it. The process must not have been reaped before."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._fd: int | None = os.pidfd_open(pid)
        except (OSError, AttributeError):
            self._fd = None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def wait(self, seconds: float) -> bool:
        """Whether the process has ended, after at most ``seconds``."""
        if self._fd is None:
            return _wait_by_state(self.pid, seconds)
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))


def _wait_by_state(pid: int, seconds: float) -> bool:
    """The same on kernels without pidfd (before 5.3, and some sandboxes)."""
    deadline = time.monotonic() + seconds
    while True:
        if has_ended(pid):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)


@contextmanager
def undisturbed() -> Iterator[None]:
    """No interrupt until the end of the block: one in the middle of cleaning up would leave the rest lying about."""
    handler = signal.getsignal(signal.SIGINT)
    # Only the main thread may change handlers, and one that C installed could not be put back.
    mine = threading.current_thread() is threading.main_thread() and handler is not None
    if mine:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if mine:
            signal.signal(signal.SIGINT, handler)


def send(pid: int, number: int) -> None:
    """Send a signal to one process; one that is gone is fine."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_all(leader: int, token: str) -> int:
    """Kill the leader, its process group, and what left the group but still carries the run's marker.

    Returns the number of processes found outside the group. Call it while the leader is alive or a zombie, so that its
    number is still its own.
    """
    send(leader, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    found: set[int] = set()
    # A few rounds: one that is being killed may just have forked.
    for _ in range(5):
        strays = [pid for pid in marked(token, after=leader) if pid != leader and not has_ended(pid)]
        if not strays:
            break
        found.update(strays)
        for pid in strays:
            send(pid, signal.SIGKILL)
        time.sleep(0.002)
    return len(found)


def marked(token: str, *, after: int = 0) -> list[int]:
    """Processes whose initial environment carries the marker. ``after`` (a pid) saves looking at older processes."""
    wanted = f"{MARKER}={token}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    if _newest_pid() >= after:
        pids = [pid for pid in pids if pid > after]
    found: list[int] = []
    for _ in range(_LOOKS):
        environs = {pid: read(f"/proc/{pid}/environ") for pid in pids}
        found += [pid for pid, environ in environs.items() if wanted in environ.split(b"\0")]
        pids = [pid for pid, environ in environs.items() if not environ and _has_program(pid)]
        if not pids:
            break
        time.sleep(0.002)
    return found


def _newest_pid() -> int:
    """Number given out last; smaller than the leader's when the numbers have wrapped round since."""
    try:
        return int(Path("/proc/loadavg").read_text(encoding="ascii").split()[-1])
    except (OSError, ValueError, IndexError):
        return -1


def _has_program(pid: int) -> bool:
    """Neither a thread of the kernel nor one that has ended."""
    return link(f"/proc/{pid}/exe") is not None and not has_ended(pid)
