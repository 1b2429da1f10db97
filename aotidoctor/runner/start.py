"""Start the two kinds of child: a fresh interpreter, and the forkserver with its link."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from aotidoctor.model.child_protocol import MARKER
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.runner.lost import ForkServerLostError
from aotidoctor.runner.process import send
from aotidoctor.runner.readout import child_error

WORKER = str(Path(__file__).absolute().parent.parent / "worker" / "__main__.py")

# numpy's OpenBLAS would start threads while torch is imported, and a process with threads cannot be forked soundly.
ONLY_FORKSERVER = {"OPENBLAS_NUM_THREADS": "1"}
# -u also takes the buffer from C's stdout: what a child printed before it died is then in the file.
FLAGS = ("-u",)
# The warm worker answers within milliseconds, unless a child has stopped it or the host is busy.
_FORK_S, _REAP_S = 15.0, 5.0
# A keeper is asked by the warm worker, which waits for it somewhat shorter.
_KEEPER_S = 30.0
SEARCH_PATHS = frozenset({"PYTHONPATH", "LD_LIBRARY_PATH"})


@record
class Spawned:
    """A started process: its handle (kept so that nobody else reaps it) and command line."""

    process: subprocess.Popen[bytes]
    argv: tuple[str, ...]

    @property
    def pid(self) -> int:
        """Process number."""
        return self.process.pid

    def reap(self) -> tuple[int | None, int | None]:
        """Wait status and peak memory in bytes of an ended process; None where somebody else has them."""
        deadline = time.monotonic() + _REAP_S
        pid = 0
        while not pid:
            try:
                pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.process.returncode = 0
                return None, None
            if not pid and time.monotonic() >= deadline:
                self.process.returncode = -signal.SIGKILL
                return None, None
            time.sleep(0 if pid else 0.002)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return status, usage.ru_maxrss * 1024


def child_environ(environ: Mapping[str, str], changes: Mapping[str, str | None], *, token: str) -> dict[str, str]:
    """The environment of a new interpreter: the user's, the changes, and what every child gets."""
    merged: dict[str, str | None] = {**environ, "PYTHONUNBUFFERED": "1", **changes, MARKER: token}
    return {name: _absolute(name, value) for name, value in merged.items() if value is not None}


def _absolute(name: str, value: str) -> str:
    """Search paths as they were meant where the user is: the child starts in a directory of its own."""
    if name not in SEARCH_PATHS:
        return value
    return os.pathsep.join(os.path.abspath(part) for part in value.split(os.pathsep) if part)  # noqa: PTH100 - of a gone one


def start_fresh(python: str, run_dir: Path, environ: Mapping[str, str], *, wrapper: tuple[str, ...] = ()) -> Spawned:
    """Start a new interpreter for one request, under the command ``wrapper`` where there is one.

    Raises:
        OSError: there is no such interpreter, or no process could be made.
    """
    argv = (*wrapper, python, *FLAGS, WORKER, "--once", str(run_dir))
    return _spawn(argv, environ, run_dir, ())


def _spawn(argv: tuple[str, ...], environ: Mapping[str, str], directory: Path, keep: tuple[int, ...]) -> Spawned:
    with (
        (directory / "stdout").open("ab") as stdout,
        (directory / "stderr").open("ab") as stderr,
    ):
        process = subprocess.Popen(  # noqa: S603 - an argument vector, no shell
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=dict(environ),
            cwd=directory,
            start_new_session=True,
            pass_fds=keep,
        )
    return Spawned(process=process, argv=argv)


class ForkServer:
    """The parent's end of a forkserver: one question, one answer."""

    def __init__(
        self, python: str, work_dir: Path, environ: Mapping[str, str], *, preload: tuple[str, ...], start_timeout: float
    ) -> None:
        self._started = time.monotonic()
        self._start_timeout = start_timeout
        self.facts: JsonObject | None = None
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = (python, *FLAGS, WORKER, "--forkserver", str(theirs.fileno()), str(work_dir), *preload)
            try:
                self.spawned = _spawn(argv, {**environ, **ONLY_FORKSERVER}, work_dir, (theirs.fileno(),))
            except OSError:
                self._link.close()
                raise

    def wait_ready(self) -> None:
        """Wait until torch is imported.

        Raises:
            ForkServerLostError: it cannot be imported (with the error), or the process ended or took too long.
        """
        if self.facts is not None:
            return
        left = self._start_timeout - (time.monotonic() - self._started)
        answer = self._receive(max(0.1, left))
        if not answer.get("ready"):
            error = child_error(answer)
            raise ForkServerLostError(f"torch could not be imported: {error.type}: {error.message}", error)
        self.facts = answer

    def fork(self, run_dir: Path, *, keep: bool = False) -> int:
        """Fork a child for the request in ``run_dir``; its pid. With ``keep`` it may leave a keeper behind.

        Raises:
            ForkServerLostError: no answer, or the fork failed.
        """
        answer = self._ask({"fork": str(run_dir), "keep": keep}, _FORK_S)
        pid = answer.get("pid")
        if not isinstance(pid, int):
            raise ForkServerLostError(f"fork failed: {answer.get('failed')}")
        return pid

    def fork_kept(self, run_dir: Path, of: int) -> int | None:
        """Fork the keeper that the child ``of`` left; None where that is not there any more.

        Raises:
            ForkServerLostError: no answer.
        """
        pid = self._ask({"fork": str(run_dir), "of": of}, _KEEPER_S).get("pid")
        return pid if isinstance(pid, int) else None

    def reap(self, pid: int, *, of: int | None = None) -> tuple[int | None, int | None]:
        """Wait status and peak memory in bytes of an ended child, or of one that the keeper of ``of`` forked.

        Raises:
            ForkServerLostError: no answer.
        """
        answer = self._ask({"reap": pid}, _REAP_S) if of is None else self._ask({"reap": pid, "of": of}, _KEEPER_S)
        status, peak = answer.get("status"), answer.get("peak_rss")
        return (status if isinstance(status, int) else None), (peak if isinstance(peak, int) else None)

    def close(self, *, wait: float = 0.0) -> None:
        """End it. Its children die with it. It gets ``wait`` seconds to see those off that it did not start itself."""
        self._link.close()
        if wait:
            with suppress(subprocess.TimeoutExpired):
                self.spawned.process.wait(wait)
        self.spawned.process.kill()
        self.spawned.reap()

    def _ask(self, command: JsonObject, seconds: float) -> JsonObject:
        # A child may have stopped it.
        send(self.spawned.pid, signal.SIGCONT)
        try:
            self._link.send(json.dumps(command).encode())
        except OSError as error:
            raise ForkServerLostError(f"the warm worker is gone: {error}") from error
        try:
            return self._receive(seconds)
        except ForkServerLostError:
            # An answer that comes late would be taken for that to the next question.
            self.spawned.process.kill()
            raise

    def _receive(self, seconds: float) -> JsonObject:
        self._link.settimeout(seconds)
        try:
            data = self._link.recv(1 << 20)
        except TimeoutError as error:
            raise ForkServerLostError(f"the warm worker did not answer within {seconds:.0f} s") from error
        except OSError as error:
            raise ForkServerLostError(f"the warm worker is gone: {error}") from error
        if not data:
            raise ForkServerLostError("the warm worker ended")
        answer = json.loads(data)
        if not isinstance(answer, dict):
            raise ForkServerLostError("the warm worker gave an invalid answer")
        return answer
