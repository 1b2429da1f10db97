"""Commands to a process that forks itself: ``fork`` (a run directory) -> the pid, ``reap`` (that pid) -> how it ended.

They come over a socket that keeps message borders; each message is one JSON object and each command has one answer.
Until ``reap`` a dead child stays a zombie, so its number cannot come to mean another process while the parent kills
what it left. When the other side is gone the socket ends, and every child is killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Command = dict[str, Any]


def threads() -> int:
    """Threads of this process. With more than one a fork is not sound."""
    return len(list(Path("/proc/self/task").iterdir()))


def fork(children: set[int], become: Callable[[], None]) -> Command:
    """Fork; the child does ``become``, which never returns."""
    try:
        pid = os.fork()
    except OSError as error:
        return {"failed": str(error)}
    if pid == 0:
        try:
            become()
        finally:
            os._exit(121)
    children.add(pid)
    return {"pid": pid}


def reap(pid: int, children: set[int]) -> Command:
    """Wait for a child that was killed before, and tell how it ended."""
    children.discard(pid)
    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError as error:
        return {"failed": str(error)}
    return {"status": status, "peak_rss": usage.ru_maxrss * 1024}


def kill(children: set[int]) -> None:
    """Kill each child with its process group."""
    for pid in children:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def send(link: socket.socket, message: Command) -> None:
    """Send one message."""
    link.send(json.dumps(message).encode())


def receive(link: socket.socket) -> Command | None:
    """The next message; None when the other side is gone."""
    try:
        data = link.recv(1 << 16)
    except ConnectionResetError:
        return None
    return json.loads(data) if data else None
