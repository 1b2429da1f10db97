"""A process that imported torch once and forks itself for each request: some milliseconds instead of a second.

It speaks with the parent over a socket that keeps message borders; each message is one JSON object and each command has
one answer: ``fork`` (a run directory) -> the pid, ``reap`` (that pid) -> wait status and resource usage. Until ``reap``
a dead child stays a zombie, so its number cannot come to mean another process while the parent kills what it left.
When the parent is gone the socket ends: every child is killed and the working directory removed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
import signal
import socket
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from aotidoctor.worker.serve import serve


def zygote(fd: int, preload: tuple[str, ...]) -> None:
    """Serve until the parent closes ``fd``. ``preload`` names the working directory, then modules to import early."""
    work_dir, *modules = preload
    with socket.socket(fileno=fd) as link:
        _send(link, _import(modules))
        gc.collect()
        gc.freeze()
        children: set[int] = set()
        while command := _receive(link):
            if "fork" in command:
                _send(link, _fork(link, command["fork"], children))
            else:
                _send(link, _reap(command["reap"], children))
    for pid in children:
        _kill(pid)
    shutil.rmtree(work_dir, ignore_errors=True)


def _import(modules: list[str]) -> dict[str, Any]:
    started = time.monotonic()
    try:
        import torch

        for name in modules:
            importlib.import_module(name)
    except BaseException as error:
        return {"type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
    threads = len(list(Path("/proc/self/task").iterdir()))
    return {"ready": True, "torch": torch.__version__, "seconds": time.monotonic() - started, "threads": threads}


def _fork(link: socket.socket, run_dir: str, children: set[int]) -> dict[str, Any]:
    try:
        pid = os.fork()
    except OSError as error:
        return {"failed": str(error)}
    if pid == 0:
        link.close()
        serve(Path(run_dir), forked=True)
    children.add(pid)
    return {"pid": pid}


def _reap(pid: int, children: set[int]) -> dict[str, Any]:
    children.discard(pid)
    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError as error:
        return {"failed": str(error)}
    return {"status": status, "peak_rss": usage.ru_maxrss * 1024}


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _send(link: socket.socket, message: dict[str, Any]) -> None:
    link.send(json.dumps(message).encode())


def _receive(link: socket.socket) -> dict[str, Any] | None:
    try:
        data = link.recv(1 << 16)
    except ConnectionResetError:
        return None
    return json.loads(data) if data else None
