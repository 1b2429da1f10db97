"""Fork a process for each request from one that imported torch once: some milliseconds instead of a second.

Commands are ``fork`` (a run directory) -> the pid, and ``reap`` (that pid) -> the exit status. They come over a socket
that preserves message boundaries; each message is one JSON object and each command has one answer. Until ``reap`` a
dead child stays a zombie, so that its number cannot be reused while the parent kills the processes it left behind.
When the parent is gone the socket ends: every child is killed and the working directory removed.

With ``keep`` a child may leave a keeper behind; ``of`` (the pid of that child) forwards a command to it. The process
that loads a model forks before its first call: the fork, the keeper, waits with the loaded model as it was, and forks
once more for each further request. They share the weights, which are neither unpacked nor loaded again, and no request
sees what another did to its process. That is sound as long as there is one thread, so the keeper is made before
anything is computed; a setup module that starts threads gets none. The keeper is no part of the run that made it: it
has a session and a marker of its own, and ends when the warm worker's end of the socket is closed.

The warm worker cleans up itself when its parent is gone, unless a child of it has stopped or traces it. So it forks
the reaper before it does anything else: that process waits for the end of the parent, gives the warm worker a moment,
and then kills it and all processes that carry the marker of a run, and removes the files.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.model.record_json import from_json
from aotidoctor.model.run import BEHIND, RUN_VARIABLE
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.serve import become_subreaper, serve, set_marker

# Commands to a process that forks itself.
ForkCommand = dict[str, Any]


def thread_count() -> int:
    """Number of threads of this process. With more than one a fork is not sound."""
    return len(list(Path("/proc/self/task").iterdir()))


def fork_child(children: set[int], become: Callable[[], None]) -> ForkCommand:
    """Fork; the child calls ``become``, which never returns."""
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


def reap_child(pid: int, children: set[int]) -> ForkCommand:
    """Wait for a child that was killed before; its exit ``status`` and ``peak_rss`` in bytes."""
    children.discard(pid)
    try:
        _, status, usage = os.wait4(pid, 0)
    except ChildProcessError as error:
        return {"failed": str(error)}
    return {"status": status, "peak_rss": usage.ru_maxrss * 1024}


def kill_children(children: set[int]) -> None:
    """Kill each child with its process group."""
    for pid in children:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def send_message(link: socket.socket, message: ForkCommand) -> None:
    """Send one message."""
    link.send(json.dumps(message).encode())


def receive_message(link: socket.socket) -> ForkCommand | None:
    """Receive the next message; None when the other side is gone."""
    try:
        data = link.recv(1 << 16)
    except ConnectionResetError:
        return None
    return json.loads(data) if data else None


# The reaper.
_GRACE_S, _LOOK_S = 1.0, 0.25
_ROUNDS = 5


def start_reaper(link: int, work_dir: str) -> None:
    """Fork the reaper as a detached process. ``link`` is the descriptor that it must not keep open."""
    parent, worker = os.getppid(), os.getpid()
    between = os.fork()
    if between == 0:
        with suppress(BaseException):
            if os.fork() == 0:
                os.close(link)
                os.setsid()
                os.chdir("/")
                null = os.open(os.devnull, os.O_RDWR)
                for number in range(3):
                    os.dup2(null, number)
                os.close(null)
                _wait_for_parent(parent, worker, Path(work_dir))
        os._exit(0)
    os.waitpid(between, 0)


def _wait_for_parent(parent: int, worker: int, work_dir: Path) -> None:
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
    _remove_files(work_dir)


def _remove_files(work_dir: Path) -> None:
    """Remove the working directory, and the folders that runs had in a TMPDIR of the user's own."""
    for run in work_dir.glob("R*-*/request.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            folder = Path(json.loads(run.read_text(encoding="utf-8"))["env"]["TMPDIR"])
            token = run.parent.name.rpartition("-")[2]
            if folder.name.endswith(token) and work_dir not in folder.parents:
                shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(work_dir, ignore_errors=True)


def _end_of(pid: int) -> Callable[[float], bool]:
    """A function of seconds that waits at most so long for the end of ``pid``, and returns whether it has ended."""
    try:
        poll = select.poll()
        poll.register(os.pidfd_open(pid), select.POLLIN)
    except ProcessLookupError:
        return lambda _seconds: True
    except (OSError, AttributeError):
        # A kernel without pidfd.
        def has_ended(seconds: float) -> bool:
            deadline = time.monotonic() + seconds
            while Path(f"/proc/{pid}").exists():
                if time.monotonic() >= deadline:
                    return False
                time.sleep(0.05)
            return True

        return has_ended
    return lambda seconds: bool(poll.poll(seconds * 1000))


def _kill_marked(work_dir: Path) -> None:
    tokens = {f"{RUN_VARIABLE}={run.name.rpartition('-')[2]}".encode() for run in work_dir.glob("R*-*")}
    for _ in range(_ROUNDS):
        found = False
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and tokens & set((entry / "environ").read_bytes().split(b"\0")):
                    found = True
                    os.kill(int(entry.name), signal.SIGKILL)
        if not found:
            return
        time.sleep(0.01)


# The keeper of a loaded model.
ServeRequest = Callable[[Run, Channel], dict[str, Any]]
_KEEPER_FOLDER = "kept-"
# The end of a socket for a keeper of this process; one at most.
_links: list[socket.socket] = []
# Modules that the first run does not need.
_behind: list[str] = []


def _import_behind() -> None:
    if not _behind:
        return
    gc.disable()
    while _behind:
        # Another release may lack it; the job that needs it will report that.
        with suppress(Exception):
            importlib.import_module(_behind.pop(0))
    gc.freeze()
    gc.enable()


def start_keeper(serve_request: ServeRequest) -> int | None:
    """Fork the keeper, which calls ``serve_request`` for each request it gets; its pid, None where there is none."""
    if not _links:
        return None
    with _links.pop() as link:
        if thread_count() > 1:
            return None
        ready, ready_end = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(ready)
            os.close(ready_end)
            return None
        if pid == 0:
            os.close(ready)
            _become_keeper(link, ready_end, serve_request)
        os.close(ready_end)
        with os.fdopen(ready, "rb") as stream:
            return pid if stream.read(1) else None


def keep_files(directory: Path) -> None:
    """Rename what the loader unpacked below ``directory``, so that the loader does not remove it.

    The libraries stay mapped under their new path, where readers of their symbols find them.
    """
    with suppress(OSError):
        for entry in directory.iterdir():
            if entry.is_dir() and not entry.name.startswith(_KEEPER_FOLDER):
                entry.rename(directory / f"{_KEEPER_FOLDER}{entry.name}")


def _become_keeper(link: socket.socket, ready_end: int, serve_request: ServeRequest) -> None:
    """Be the keeper until the end of this process; a byte to ``ready_end`` shows that it has begun."""
    children: set[int] = set()
    try:
        os.setsid()
        set_marker(os.urandom(8).hex())
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.write(ready_end, b"1")
        os.close(ready_end)
        # The run that made this process calls the model now, so this costs no time where there is a core for it.
        _import_behind()
        if thread_count() > 1:
            return
        while command := receive_message(link):
            if "fork" in command:
                become = partial(_serve_fork, link, Path(command["fork"]), serve_request)
                send_message(link, fork_child(children, become))
            else:
                send_message(link, reap_child(command["reap"], children))
    finally:
        kill_children(children)
        os._exit(0)


def _serve_fork(link: socket.socket, run_dir: Path, serve_request: ServeRequest) -> None:
    link.close()
    serve(run_dir, forked=True, ask=serve_request)


# The warm worker.
WARM_MODULES = (
    "aotidoctor.worker.run_model",
    "aotidoctor.worker.safe_load",
    "aotidoctor.worker.weights",
    "torch.export._tree_utils",
    "zipfile",
)
# The parent waits for an answer somewhat longer.
_KEEPER_S = 20.0


def forkserver(fd: int, preload: tuple[str, ...]) -> None:
    """Serve until the parent closes ``fd``.

    ``preload`` names the working directory, modules to import early, and after ``BEHIND`` those that the first run does
    not need: its keeper imports them, and this process before it forks for another run.
    """
    work_dir, *modules = preload
    if BEHIND in modules:
        at = modules.index(BEHIND)
        _behind[:], modules = modules[at + 1 :], modules[:at]
    # First of all: it must be small, and this process must have one thread.
    start_reaper(fd, work_dir)
    children: set[int] = set()
    keepers: dict[int, socket.socket] = {}
    # Keepers outlive the run that made them; this process then waits for them.
    become_subreaper()
    try:
        with socket.socket(fileno=fd) as link:
            # Objects made by imports stay for good: collecting garbage among them takes a fifth of the time.
            gc.disable()
            send_message(link, _import_modules(modules))
            _warm_up()
            gc.freeze()
            gc.enable()
            first = True
            while command := receive_message(link):
                if "of" in command:
                    send_message(link, _forward(command, keepers))
                elif "fork" in command:
                    if not first:
                        _import_behind()
                    first = False
                    send_message(link, _fork(link, command, children, keepers))
                else:
                    send_message(link, reap_child(command["reap"], children))
    except (BrokenPipeError, ConnectionResetError):
        pass  # The parent was killed while we were busy.
    kill_children(children)
    for end in keepers.values():
        end.close()
    # Wait for the remaining children; the parent waits some seconds for this process, and then no longer.
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    _remove_files(Path(work_dir))
    os._exit(0)


def _import_modules(modules: list[str]) -> dict[str, Any]:
    started = time.monotonic()
    try:
        import torch

        for name in modules:
            # Another release may lack it; the job that needs it will report that.
            with suppress(ImportError):
                importlib.import_module(name)
    except BaseException as error:
        return {"type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
    seconds = time.monotonic() - started
    return {"ready": True, "torch": torch.__version__, "seconds": seconds, "threads": thread_count()}


def _warm_up() -> None:
    """Do once what every child would do at its first use: import the jobs, read a saved tensor, describe it."""
    with suppress(Exception):
        import io

        import torch

        from aotidoctor.worker.load_package import slot_address
        from aotidoctor.worker.tensors import describe, digest

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
    link: socket.socket, command: ForkCommand, children: set[int], keepers: dict[int, socket.socket]
) -> ForkCommand:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def become() -> None:
        for end in (link, ours, *keepers.values()):
            end.close()
        if command.get("keep"):
            # Let this process make a keeper, which will get its commands over ``link``.
            _links.append(theirs)
        serve(Path(command["fork"]), forked=True)

    answer = fork_child(children, become)
    theirs.close()
    if command.get("keep") and "pid" in answer:
        keepers[answer["pid"]] = ours
    else:
        ours.close()
    return answer


def _forward(command: ForkCommand, keepers: dict[int, socket.socket]) -> ForkCommand:
    """Forward a command to the keeper that the run ``command["of"]`` made; its answer."""
    link = keepers.get(command["of"])
    if link is None:
        return {"failed": "there is no such keeper"}
    try:
        link.settimeout(_KEEPER_S)
        send_message(link, command)
        return receive_message(link) or {"failed": "the keeper ended"}
    except OSError as error:
        # A late answer of it would be taken for the answer to the next command.
        keepers.pop(command["of"]).close()
        return {"failed": str(error)}
