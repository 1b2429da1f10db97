"""A process that imported torch once and forks itself for each request: some milliseconds instead of a second.

It is asked as ``forks`` describes. With ``keep`` the child may leave a keeper behind, a process with the loaded model;
``of`` (the pid of that child) hands a command on to it. When the parent is gone the socket ends: every child is killed
and the working directory removed.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import socket
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.model.records import from_json
from aotidoctor.worker import forks, keeper, reaper
from aotidoctor.worker.describe import describe, digest
from aotidoctor.worker.limits import become_subreaper
from aotidoctor.worker.serve import serve
from aotidoctor.worker.unpacked import slot_address

WARM_MODULES = (
    "aotidoctor.worker.run_model",
    "aotidoctor.worker.materialize",
    "aotidoctor.worker.weights",
    "torch.export._tree_utils",
    "zipfile",
)
# The parent waits for an answer somewhat longer.
_KEEPER_S = 20.0


def forkserver(fd: int, preload: tuple[str, ...]) -> None:
    """Serve until the parent closes ``fd``. ``preload`` names the working directory, then modules to import early."""
    work_dir, *modules = preload
    # First of all: it must be small, and this process must have one thread.
    reaper.start(fd, work_dir)
    children: set[int] = set()
    keepers: dict[int, socket.socket] = {}
    # Keepers outlive the run that made them, and are then ours to be waited for.
    become_subreaper()
    try:
        with socket.socket(fileno=fd) as link:
            # What importing makes is here to stay: to look through it again and again takes a fifth of the time.
            gc.disable()
            forks.send(link, _import(modules))
            _warm_up()
            gc.freeze()
            gc.enable()
            _answer(link, children, keepers)
    except (BrokenPipeError, ConnectionResetError):
        pass  # The parent was killed while we were busy.
    forks.kill(children)
    for end in keepers.values():
        end.close()
    _bury()
    shutil.rmtree(work_dir, ignore_errors=True)
    os._exit(0)


def _bury() -> None:
    """Wait for whoever is left; the parent waits some seconds for us, and then no longer."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _answer(link: socket.socket, children: set[int], keepers: dict[int, socket.socket]) -> None:
    while command := forks.receive(link):
        if "of" in command:
            forks.send(link, _relay(command, keepers))
        elif "fork" in command:
            forks.send(link, _fork(link, command, children, keepers))
        else:
            forks.send(link, forks.reap(command["reap"], children))


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
    seconds = time.monotonic() - started
    return {"ready": True, "torch": torch.__version__, "seconds": seconds, "threads": forks.threads()}


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
        from_json(Run, {})
        for tensor in (torch.load(stream, weights_only=True)[0], torch.zeros(1, dtype=torch.int64)):
            describe("", tensor, values=True)
            digest(tensor)


def _fork(
    link: socket.socket, command: forks.Command, children: set[int], keepers: dict[int, socket.socket]
) -> forks.Command:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def become() -> None:
        for end in (link, ours, *keepers.values()):
            end.close()
        if command.get("keep"):
            keeper.offer(theirs)
        serve(Path(command["fork"]), forked=True)

    answer = forks.fork(children, become)
    theirs.close()
    if command.get("keep") and "pid" in answer:
        keepers[answer["pid"]] = ours
    else:
        ours.close()
    return answer


def _relay(command: forks.Command, keepers: dict[int, socket.socket]) -> forks.Command:
    """Ask the keeper that the run ``command["of"]`` made."""
    link = keepers.get(command["of"])
    if link is None:
        return {"failed": "there is no such keeper"}
    try:
        link.settimeout(_KEEPER_S)
        forks.send(link, command)
        return forks.receive(link) or {"failed": "the keeper ended"}
    except OSError as error:
        # Whatever it still says would be taken for the answer to the next question.
        keepers.pop(command["of"]).close()
        return {"failed": str(error)}
