"""A model that is loaded once and asked several questions, each in a process of its own.

The process that loads a model forks before its first call: the fork, the keeper, waits with the loaded model as it
was, and forks once more for each further question. They share the weights, which are neither unpacked nor loaded
again; whatever a question does to its process is seen by nobody else.

That is sound as long as there is one thread, so the keeper is made before anything is computed; a setup module that
starts threads gets none. The keeper is no part of the run that made it: it has a session and a marker of its own, and
ends when the warm worker's end of the socket is closed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker import forks
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.limits import set_marker

Ask = Callable[[Run, Channel], dict[str, Any]]
_KEPT = "kept-"
# The end of a socket that this process may hand to a keeper; one at most.
_links: list[socket.socket] = []


def offer(link: socket.socket) -> None:
    """Let this process make a keeper, which will be asked over ``link``."""
    _links.append(link)


def keep(ask: Ask) -> int | None:
    """Fork the keeper, which does ``ask`` for each request it gets; its pid, None where there is none."""
    if not _links:
        return None
    with _links.pop() as link:
        if forks.threads() > 1:
            return None
        ready, tell = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(ready)
            os.close(tell)
            return None
        if pid == 0:
            os.close(ready)
            _keeper(link, tell, ask)
        os.close(tell)
        with os.fdopen(ready, "rb") as stream:
            return pid if stream.read(1) else None


def keep_files(directory: Path) -> None:
    """Move what the loader unpacked below ``directory`` out of the way of the loader, which would remove it.

    The libraries stay mapped under their new path, where those find them that look for their symbols.
    """
    with suppress(OSError):
        for entry in directory.iterdir():
            if entry.is_dir() and not entry.name.startswith(_KEPT):
                entry.rename(directory / f"{_KEPT}{entry.name}")


def _keeper(link: socket.socket, tell: int, ask: Ask) -> None:
    """Be the keeper, to the end of this process."""
    children: set[int] = set()
    try:
        os.setsid()
        set_marker(os.urandom(8).hex())
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.write(tell, b"1")
        os.close(tell)
        while command := forks.receive(link):
            if "fork" in command:
                become = partial(_question, link, Path(command["fork"]), ask)
                forks.send(link, forks.fork(children, become))
            else:
                forks.send(link, forks.reap(command["reap"], children))
    finally:
        forks.kill(children)
        os._exit(0)


def _question(link: socket.socket, run_dir: Path, ask: Ask) -> None:
    from aotidoctor.worker.serve import serve

    link.close()
    serve(run_dir, forked=True, ask=ask)
