"""Run requests where Linux is not there: each in a new interpreter by ``subprocess`` alone, one after the other.

No warm worker, no debugger, no tool around the child, no trace of calls, no look at /proc. It is chosen by itself
off Linux, and anywhere by ``AOTIDOCTOR_RUNNER=portable``. A child ends when its standard input closes, so that none
outlives this process. What it starts itself is ended with it, unless it leaves its group (its tree, on Windows).

A child that Windows ended has a number of NTSTATUS as its exit code: those of exceptions become the signal of the
same fault on POSIX.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.run import PRIVATE_PREFIX, Ending, Outcome, Request, Signalled, TimedOut, portable
from aotidoctor.runner.child_ending import exit_ending, read_channel
from aotidoctor.runner.run_dir import RunDir, make_run_dir, write_request
from aotidoctor.runner.runner import Runner, read_outcome, unstarted_outcome
from aotidoctor.runner.start_child import Spawned, child_environ, start_fresh
from aotidoctor.runner.supervise import ChildOutput, wait_for_end

NO_DEBUGGER = "no stacks: the portable runner has no debugger"
NO_WRAPPER = "the portable runner starts no tool around a child"
# NTSTATUS (winnt.h, ntstatus.h), the signal of the same fault on POSIX and its name; 3 is what abort() exits with.
_FAULTS = {
    0xC0000005: (11, "SIGSEGV"),
    0xC00000FD: (11, "SIGSEGV"),
    0xC000001D: (4, "SIGILL"),
    0xC0000094: (8, "SIGFPE"),
    0xC0000374: (6, "SIGABRT"),
    0xC0000409: (6, "SIGABRT"),
    3: (6, "SIGABRT"),
}
_LAST_S = 10.0
_STACKS_S = 0.2


def make_runner(
    *,
    environ: Mapping[str, str],
    preload: tuple[str, ...] = (),
    keep: Callable[[str, Path], None] | None = None,
    place: str | None = None,
) -> Runner:
    """The runner of this system; the arguments are those of ``Runner``."""
    kind = PortableRunner if portable(environ) else Runner
    return kind(environ=environ, preload=preload, keep=keep, place=place)


class PortableRunner(Runner):
    """Runs requests as ``Runner`` does, in new interpreters only; a context manager."""

    unseen = (
        "the portable runner traces no compiled calls: which of them fails, and what kernels and custom operators read "
        "and write, was not looked at"
    )

    def prewarm(self) -> None:
        """Nothing: there is no warm worker."""

    @contextmanager
    def room(self) -> Iterator[Path]:
        """A folder for files of the caller, which goes at the end of the block. Raises OSError."""
        with tempfile.TemporaryDirectory(prefix="room-", dir=self._folder(), ignore_cleanup_errors=True) as room:
            yield Path(room)

    def run(self, request: Request) -> Outcome:
        """Run one request to its end. Raises nothing for what the child did; an interrupt kills the child first."""
        self._count += 1
        run_id = f"R{self._count}"
        if request.wrapper:
            return unstarted_outcome(run_id, request, NO_WRAPPER)
        began, run_dir = time.monotonic(), None
        try:
            folder = self._folder()
            run_dir = make_run_dir(folder, run_id, {**self._environ, **request.env}.get("TMPDIR") or str(folder.parent))
            child = self._spawn(replace(request, debugger=False, stacks=False, gpu_core=False), run_dir)
        except OSError as error:
            if run_dir is not None:
                run_dir.remove()
            return unstarted_outcome(run_id, request, str(error))
        try:
            return self._finish(run_id, request, child, run_dir, began)
        finally:
            _end(child)
            run_dir.remove()

    def start(self, request: Request) -> Outcome:
        """Run it to its end: nothing runs side by side here."""
        return self.run(request)

    def _folder(self) -> Path:
        if self._work_dir is None:
            places = [self._place, self._environ.get("TMPDIR"), None]
            place = next(one for one in places if one is None or Path(one).is_dir())
            self._work_dir = Path(tempfile.mkdtemp(prefix=PRIVATE_PREFIX, dir=place)).absolute()
        return self._work_dir

    def _spawn(self, request: Request, run_dir: RunDir) -> Spawned:
        changes = {**request.env, "TMPDIR": run_dir.tmp, "TEMP": run_dir.tmp, "TMP": run_dir.tmp}
        write_request(request, run_dir, changes, parent=os.getpid())
        environ = child_environ(self._environ, changes, token=run_dir.token)
        return start_fresh(self._python, run_dir.path, environ, stdin=subprocess.PIPE)

    def _finish(self, run_id: str, request: Request, child: Spawned, run_dir: RunDir, began: float) -> Outcome:
        channel, on_event = run_dir.file("channel.jsonl"), self._on_event
        limit = wait_for_end(
            child,
            channel,
            limit=request.timeout,
            start_limit=self._start_timeout,
            streams=(),
            on_stage=None if on_event is None else lambda stage: on_event(run_id, stage),
        )
        if limit is not None and child.process.stdin is not None:
            # It writes its Python stacks to stderr; code that holds the interpreter's lock prevents it.
            with suppress(OSError):
                child.process.stdin.write(b"?")
                child.process.stdin.flush()
            child.wait(_STACKS_S)
        _end(child)
        if self._keep is not None:
            self._keep(run_id, run_dir.path)
        readout = read_channel(channel)
        code = child.process.returncode
        signalled: Ending | None = TimedOut(limit=limit) if limit is not None else _signal_of(code)
        ending = signalled or exit_ending(code, readout)
        streams = ChildOutput(run_dir.file("stdout")), ChildOutput(run_dir.file("stderr"))
        return replace(
            read_outcome(run_id, request, run_dir, readout, ending=ending, streams=streams),
            seconds=time.monotonic() - began,
            argv=child.argv,
            debugger_problem=NO_DEBUGGER if request.debugger or request.stacks else None,
        )


def _signal_of(code: int | None) -> Signalled | None:
    if code is None:
        return None
    if code < 0:
        name = next((one.name for one in signal.Signals if one == -code), f"SIG{-code}")
        return Signalled(signal=-code, name=name)
    if os.name == "nt" and code in _FAULTS:
        number, name = _FAULTS[code]
        return Signalled(signal=number, name=name)
    return None


def _end(child: Spawned) -> None:
    """Kill what is left of it, and take its exit code."""
    process = child.process
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None and (taskkill := shutil.which("taskkill")):
        with suppress(OSError, subprocess.TimeoutExpired):
            command = [taskkill, "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(command, check=False, capture_output=True, timeout=_LAST_S)
    process.kill()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    child.wait(_LAST_S)
