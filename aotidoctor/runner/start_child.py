"""Start a child: a fork of the warm worker, a fork of a process with the model loaded, or a new interpreter.

A request may be forked from a process that has loaded the package already when nothing that acts before or during the
load sets it apart: the same file, loaded in the same way, and no variable that is read earlier than the first call.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

from aotidoctor.model.jobs import Run
from aotidoctor.model.record import JsonObject, record, values_of
from aotidoctor.model.run import RUN_VARIABLE, ChildError, Request
from aotidoctor.model.torch_names import CHECK_INPUTS
from aotidoctor.runner.child_ending import ProcessWatch, child_error, send_signal
from aotidoctor.runner.run_dir import RunDir, write_request


class ForkServerLostError(Exception):
    """The forkserver does not answer any more, or never did. ``error`` is set when torch could not be imported."""

    def __init__(self, reason: str, error: ChildError | None = None) -> None:
        super().__init__(reason)
        self.error = error


# The two kinds of child: a new interpreter, and the forkserver with its link.
WORKER = str(Path(__file__).absolute().parent.parent / "worker" / "__main__.py")

# numpy's OpenBLAS would start threads while torch is imported, and a process with threads cannot be forked soundly.
# OpenMP's threads would wait for each other by spinning: where others need the cores, a call takes three times as long.
ONLY_FORKSERVER = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
# -u also takes the buffer from C's stdout: what a child printed before it died is then in the file.
FLAGS = ("-u",)
# The warm worker answers within milliseconds, unless a child has stopped it or the host is busy.
_FORK_S, _REAP_S = 15.0, 5.0
# The warm worker passes the request on to a keeper, and waits somewhat shorter for it.
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

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, after at most ``seconds``; the exit status is then that of ``process``."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

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
    given = {**environ, "PYTHONUNBUFFERED": "1", **changes, RUN_VARIABLE: token}
    merged = {name: value for name, value in given.items() if value is not None}
    for name in SEARCH_PATHS & merged.keys():
        # The child starts in a directory of its own, so relative paths are resolved here.
        parts = merged[name].split(os.pathsep)
        merged[name] = os.pathsep.join(str(Path(part).absolute()) for part in parts if part)
    return merged


def start_fresh(
    python: str, run_dir: Path, environ: Mapping[str, str], *, wrapper: tuple[str, ...] = (), stdin: int = DEVNULL
) -> Spawned:
    """Start a new interpreter for one request, under the command ``wrapper`` where there is one.

    Raises:
        OSError: there is no such interpreter, or no process could be made.
    """
    return _spawn((*wrapper, python, *FLAGS, WORKER, "--once", str(run_dir)), environ, run_dir, stdin=stdin)


def _spawn(
    argv: tuple[str, ...], environ: Mapping[str, str], directory: Path, keep: tuple[int, ...] = (), stdin: int = DEVNULL
) -> Spawned:
    with (directory / "stdout").open("ab") as stdout, (directory / "stderr").open("ab") as stderr:
        process = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=dict(environ),
            cwd=directory,
            start_new_session=True,
            pass_fds=keep,
        )
    return Spawned(process=process, argv=argv)


class ForkServer:
    """The parent's end of a forkserver: each command gets one answer."""

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

    def fork_resident(self, run_dir: Path, of: int) -> int | None:
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
        """End it. Its children die with it. It gets ``wait`` seconds to end those that it did not start itself."""
        self._link.close()
        if wait:
            watch = ProcessWatch(self.spawned.pid)
            watch.wait(wait)
            watch.close()
        self.spawned.process.kill()
        self.spawned.reap()

    def _ask(self, command: JsonObject, seconds: float) -> JsonObject:
        # A child may have stopped it.
        send_signal(self.spawned.pid, signal.SIGCONT)
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


# The process that holds a loaded model, and the requests that may share it.
_LOADING = (
    "package",
    "kind",
    "model_name",
    "device",
    "device_index",
    "code",
    "heap_checks",
    "share_reference",
    "weights",
    "confine",
)
# What a treatment changes before the first call; its other steps change the inputs.
_EARLY_STEPS = (
    *("model_name", "setup", "device", "tmpdir", "import", "stand_in_operator"),
    *("repack", "clear_execstack", "global_libtorch", "headers", "load_weights", "fit_weights", "fill_weights"),
)
# Read by the compiled code at its first call.
_LATE_VARIABLES = frozenset({CHECK_INPUTS})


@record
class ResidentModel:
    """A keeper: process ``pid``, left by the run whose process was ``of``. ``run_dir`` holds the unpacked package.

    ``threads`` is the number that its run had to use; None for torch's own, which any other may follow.
    """

    key: str
    threads: int | None
    of: int
    pid: int
    run_dir: RunDir

    def serves(self, request: Request, key: str | None) -> bool:
        """Whether ``request``, of this ``key``, may be forked from it."""
        return key == self.key and self.threads in (None, getattr(request.payload, "threads", None))

    def end(self) -> None:
        """Kill it, and remove its files."""
        # Its number is its own: the warm worker does not wait for it before it ends itself.
        send_signal(self.pid, signal.SIGKILL)
        self.run_dir.remove()


def load_key(request: Request) -> str | None:
    """Equal for requests that may share one load; None for one that shares none."""
    payload = request.payload
    if (
        request.job != "run"
        or set(request.env) - _LATE_VARIABLES
        or not isinstance(payload, Run)
        or not payload.package
    ):
        return None
    early = [step for step in payload.treatment if step.get("op") in _EARLY_STEPS]
    facts = [{name: getattr(payload, name) for name in _LOADING}, early, request.memory_limit]
    try:
        # A path may be empty, or none at all.
        file = Path(payload.package or "\0").stat()
    except (OSError, ValueError):
        return None
    return json.dumps(
        [facts, file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns], sort_keys=True, default=values_of
    )


# The choice between a fork and a new interpreter.
# Read by libraries when they are loaded, or by torch when it is imported: a forked child would change them too late.
# TORCH_SHOW_CPP_STACKTRACES is one of them (torch 2.13: set after the import it changes nothing).
_READ_AT_START = re.compile(
    r"(LD|OMP|GOMP|KMP|MKL|OPENBLAS|MALLOC|GLIBC|CUDA|NVIDIA|PYTORCH|ATEN|TORCH|TORCHINDUCTOR|LC)_|PYTHON|LANG$"
)
# A loaded model is much memory to give back.
_KEEPER_ENDS_S = 3.0
# In a request: the directory of its run, which nobody knows before.
RUN_DIR = "{run_dir}"


@record
class StartedChild:
    """A started child. ``reap`` gives wait status and peak memory in bytes, once, after its end.

    ``key`` is that of the load which it may leave to later requests, None where it leaves none.
    """

    watch: ProcessWatch
    argv: tuple[str, ...]
    forked: bool
    reap: Callable[[], tuple[int | None, int | None]]
    key: str | None = None


class ChildLauncher:
    """Starts children; owns the warm worker. ``work_dir`` is where the warm worker keeps its output."""

    def __init__(
        self, *, python: str, environ: Mapping[str, str], work_dir: Path, start_timeout: float, preload: tuple[str, ...]
    ) -> None:
        self._python = python
        self._environ = environ
        self._work_dir = work_dir
        self._start_timeout = start_timeout
        self._preload = preload
        self._forkserver: ForkServer | None = None
        self._no_torch: ForkServerLostError | None = None
        self._resident: ResidentModel | None = None
        self._had_resident = False

    @property
    def facts(self) -> JsonObject | None:
        """Facts that the warm worker sent about itself, None before that."""
        return self._forkserver.facts if self._forkserver is not None else None

    def warm(self) -> ForkServer:
        """The warm worker, started if need be, perhaps not ready yet.

        Raises:
            OSError: it cannot be started.
        """
        if self._forkserver is None:
            # Some modules make folders while they are imported; those must go with everything else.
            own = self._work_dir / "tmp"
            own.mkdir(mode=0o700, exist_ok=True)
            environ = child_environ(self._environ, {"TMPDIR": str(own)}, token=os.urandom(8).hex())
            self._forkserver = ForkServer(
                self._python, self._work_dir, environ, preload=self._preload, start_timeout=self._start_timeout
            )
        return self._forkserver

    def launch(self, request: Request, run_dir: RunDir) -> StartedChild:
        """Start the child for ``request``.

        Raises:
            OSError: no process could be made.
            ForkServerLostError: torch cannot be imported, or the warm worker died twice.
        """
        if needs_fresh(request):
            return self._fresh(request, run_dir)
        try:
            return self._forked(request, run_dir)
        except ForkServerLostError as lost:
            if lost.error is not None:
                raise
            self.close()
            return self._forked(request, run_dir)

    def keep(self, child: StartedChild, request: Request, keeper: int, run_dir: RunDir) -> None:
        """Fork later requests from ``keeper``, which ``child`` left; ``run_dir`` is then ours to remove."""
        if child.key is not None:
            self.forget()
            self._had_resident = True
            threads = getattr(request.payload, "threads", None)
            self._resident = ResidentModel(
                key=child.key, threads=threads, of=child.watch.pid, pid=keeper, run_dir=run_dir
            )

    def needs(self, run_dir: RunDir) -> bool:
        """Whether the files in ``run_dir`` are still used."""
        return self._resident is not None and self._resident.run_dir is run_dir

    def close(self) -> None:
        """End the warm worker."""
        self.forget()
        if self._forkserver is not None:
            forkserver, self._forkserver = self._forkserver, None
            forkserver.close(wait=_KEEPER_ENDS_S if self._had_resident else 0.0)

    def forget(self) -> None:
        """End the keeper, where there is one, and remove its files."""
        if self._resident is not None:
            model, self._resident = self._resident, None
            model.end()

    def _fresh(self, request: Request, run_dir: RunDir) -> StartedChild:
        def place(text: str) -> str:
            return text.replace(RUN_DIR, str(run_dir.path))

        env = {name: place(value) if value is not None else None for name, value in request.env.items()}
        request = replace(request, env=env, wrapper=tuple(map(place, request.wrapper)))
        changes = {**request.env, "TMPDIR": run_dir.tmp}
        write_request(request, run_dir, changes, parent=os.getpid())
        environ = child_environ(self._environ, changes, token=run_dir.token)
        spawned = start_fresh(self._python, run_dir.path, environ, wrapper=request.wrapper)
        return StartedChild(watch=ProcessWatch(spawned.pid), argv=spawned.argv, forked=False, reap=spawned.reap)

    def _forked(self, request: Request, run_dir: RunDir) -> StartedChild:
        if self._no_torch is not None:
            raise self._no_torch
        forkserver = self.warm()
        try:
            forkserver.wait_ready()
        except ForkServerLostError as lost:
            self._no_torch = lost if lost.error is not None else None
            raise
        usual = {name: self._environ.get(name) for name in ONLY_FORKSERVER}
        write_request(request, run_dir, {**usual, **request.env, "TMPDIR": run_dir.tmp}, parent=forkserver.spawned.pid)
        key = load_key(request)
        of = self._resident.of if self._resident is not None and self._resident.serves(request, key) else None
        pid = forkserver.fork_resident(run_dir.path, of) if of is not None else None
        if pid is None:
            of, pid = None, forkserver.fork(run_dir.path, keep=key is not None)
        return StartedChild(
            watch=ProcessWatch(pid),
            argv=forkserver.spawned.argv,
            forked=True,
            reap=partial(forkserver.reap, pid, of=of),
            key=key if of is None else None,
        )


def needs_fresh(request: Request) -> bool:
    """Whether a fork of the warm worker would be unsound, or would not do what ``request`` requires."""
    early = bool(request.wrapper) or any(_READ_AT_START.match(name) for name in request.env)
    steps = request.payload.treatment if isinstance(request.payload, Run) else ()
    devices = filter(None, [getattr(request.payload, "device", None), *(step.get("device") for step in steps)])
    return request.fresh or early or any(not str(device).startswith("cpu") for device in devices)
