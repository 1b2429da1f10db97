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

from aotidoctor.worker.describe import describe, digest
from aotidoctor.worker.serve import serve
from aotidoctor.worker.unpacked import slot_address

WARM_MODULES = (
    "aotidoctor.worker.run_model",
    "aotidoctor.worker.materialize",
    "aotidoctor.worker.weights",
    "torch.export._tree_utils",
    "zipfile",
)


def zygote(fd: int, preload: tuple[str, ...]) -> None:
    """Serve until the parent closes ``fd``. ``preload`` names the working directory, then modules to import early."""
    work_dir, *modules = preload
    children: set[int] = set()
    try:
        with socket.socket(fileno=fd) as link:
            _send(link, _import(modules))
            _warm_up()
            gc.collect()
            gc.freeze()
            _answer(link, children)
    except (BrokenPipeError, ConnectionResetError):
        pass  # The parent was killed while we were busy.
    for pid in children:
        _kill(pid)
    shutil.rmtree(work_dir, ignore_errors=True)


def _answer(link: socket.socket, children: set[int]) -> None:
    while command := _receive(link):
        if "fork" in command:
            _send(link, _fork(link, command["fork"], children))
        else:
            _send(link, _reap(command["reap"], children))


def _import(modules: list[str]) -> dict[str, Any]:
    started = time.monotonic()
    try:
        import torch

        for name in modules:
            # Another release may lack it; who needs it will say so.
            with suppress(ImportError):
                importlib.import_module(name)
    except BaseException as error:
        return {"type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
    threads = len(list(Path("/proc/self/task").iterdir()))
    return {"ready": True, "torch": torch.__version__, "seconds": time.monotonic() - started, "threads": threads}


def _warm_up() -> None:
    """Do once, here, what every child would do at its first use: import the jobs, read a saved tensor, look at it."""
    with suppress(Exception):
        import io

        import torch

        for name in WARM_MODULES:
            importlib.import_module(name)
        stream = io.BytesIO()
        torch.save([torch.zeros(2), {"a": torch.zeros(1, dtype=torch.int64)}], stream)
        stream.seek(0)
        slot_address()
        for tensor in (torch.load(stream, weights_only=True)[0], torch.zeros(1, dtype=torch.int64)):
            describe("", tensor, values=True)
            digest(tensor)


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
