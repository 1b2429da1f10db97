"""Run requests, each in a process of its own, and tell how each ended.

A request is forked off a warm process where that is sound, and gets a new interpreter otherwise: when it asks for one,
when it is for another device than the CPU (a driver must not be forked), and when its environment changes something
that libraries read once, at their start.

Nothing stays behind: files are removed after each run, processes are found by group and by marker and killed, a warm
worker whose parent vanished cleans up by itself, and every child dies with its parent.
"""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.answers import sound
from aotidoctor.model.run import ChildError, NotStarted, Outcome, Request
from aotidoctor.runner.ending import End, classify
from aotidoctor.runner.lost import ForkServerLostError
from aotidoctor.runner.memory import oom_kills, risen
from aotidoctor.runner.native import Native
from aotidoctor.runner.output import Output
from aotidoctor.runner.places import RunDir, make_run_dir, make_work_dir, remove_tree, remove_unpacked
from aotidoctor.runner.process import kill_all, undisturbed
from aotidoctor.runner.readout import Readout, read_channel
from aotidoctor.runner.tool_files import read_tool_output
from aotidoctor.runner.trace_file import read_trace
from aotidoctor.runner.wait import dump_stacks, wait_for_end

if TYPE_CHECKING:
    from types import TracebackType

    from aotidoctor.runner.launch import Child, Launcher

OnEvent = Callable[[str, str], None]
"""Called with the id of a run and the stage it was last seen in, about ten times a second."""

_UNKILLABLE_AFTER = 10.0


@dataclass(slots=True, kw_only=True)
class Pending:
    """A run that was started and not yet finished."""

    id: str
    request: Request
    run_dir: RunDir
    child: Child
    native: Native
    oom_before: dict[str, int]
    began: float = field(default_factory=time.monotonic)
    buried: bool = False


class Runner:
    """Runs requests; a context manager.

    ``environ`` is the environment that the user's program would have. ``python`` is the interpreter of the worker.
    ``start_timeout`` bounds importing torch, in seconds; a request's own timeout begins after that. ``preload`` names
    modules that the warm worker imports together with torch. ``keep`` is shown the directory of each run after its end,
    before it is removed. One thread at a time may use a runner, and that thread must outlive the runs it starts (the
    kernel kills a child with the thread that made it).
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        python: str = sys.executable,
        on_event: OnEvent | None = None,
        start_timeout: float = 180.0,
        preload: tuple[str, ...] = (),
        keep: Callable[[str, Path], None] | None = None,
    ) -> None:
        self._environ = dict(environ)
        self._python = python
        self._on_event = on_event
        self._start_timeout = start_timeout
        self._preload = preload
        self._keep = keep
        self._work_dir: Path | None = None
        self._launcher: Launcher | None = None
        self._count = 0
        self._pending: dict[str, Pending] = {}
        atexit.register(self.close)

    def __enter__(self) -> Runner:  # noqa: PYI034 - typing.Self is of Python 3.11
        """The runner itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    @property
    def torch_version(self) -> str | None:
        """Version that the warm worker imported; None when it has not yet, or could not."""
        facts = self._launcher.facts if self._launcher is not None else None
        return str(facts.get("torch")) if facts is not None else None

    def prewarm(self) -> None:
        """Start the warm worker now, without waiting for it."""
        try:
            self._open().warm()
        except OSError:
            return  # The first run meets the same error and reports it.

    def run(self, request: Request) -> Outcome:
        """Run one request to its end. Raises nothing for what the child did; an interrupt kills the child first."""
        started = self.start(request)
        return self.finish(started) if isinstance(started, Pending) else started

    def start(self, request: Request) -> Pending | Outcome:
        """Start one request without waiting for its end, so that several may run; an Outcome if it could not start."""
        self._count += 1
        run_id = f"R{self._count}"
        run_dir: RunDir | None = None
        pending: Pending | None = None
        try:
            launcher = self._open()
            tmp_base = {**self._environ, **request.env}.get("TMPDIR")
            run_dir = make_run_dir(self._work_dir or Path(), run_id, tmp_base)
            before = oom_kills()
            child = launcher.launch(request, run_dir)
            native = Native(request, run_dir, self._environ.get("PATH"))
            pending = Pending(
                id=run_id, request=request, run_dir=run_dir, child=child, native=native, oom_before=before
            )
        except (OSError, ForkServerLostError) as error:
            return _not_started(run_id, request, error)
        finally:
            if pending is None and run_dir is not None:
                run_dir.remove()
        self._pending[run_id] = pending
        return pending

    def finish(self, pending: Pending) -> Outcome:
        """Wait for the end of a started request, kill what is left of it, and read what it told."""
        stdout, stderr = (Output(pending.run_dir.file(name)) for name in ("stdout", "stderr"))
        channel = pending.run_dir.file("channel.jsonl")
        on_event = self._on_event
        try:
            limit = wait_for_end(
                pending.child.watch,
                channel,
                limit=pending.request.timeout,
                start_limit=self._start_timeout,
                streams=(stdout, stderr),
                on_stage=None if on_event is None else lambda stage: on_event(pending.id, stage),
            )
            told = None
            if limit is not None and pending.native.was_dying(pending.child.watch):
                limit = None
            if limit is not None:
                # Before the stacks: their signal may wake the child up, and what it does then is not its own doing.
                told = read_channel(channel)
                pending.native.look(pending.child.watch.pid)
                dump_stacks(pending.child.watch)
            pending.native.finish()
            end = _bury(pending, limit)
            if self._keep is not None:
                self._keep(pending.id, pending.run_dir.path)
            readout = told or read_channel(channel)
            remove_unpacked(readout.result.get("unpacked"))
            keeper = readout.result.get("kept")
            if isinstance(keeper, int) and self._launcher is not None:
                self._launcher.keep(pending.child, pending.request, keeper, pending.run_dir)
            return _outcome(pending, end, readout, stdout, stderr)
        finally:
            self._drop(pending)

    def forget(self) -> None:
        """Let go of the loaded package that later requests would be forked from: its memory and its files."""
        if self._launcher is not None:
            self._launcher.forget()

    def close(self) -> None:
        """Kill everything and remove every file. May be called twice."""
        with undisturbed():
            for pending in list(self._pending.values()):
                self._drop(pending)
            if self._launcher is not None:
                self._launcher.close()
                self._launcher = None
            if self._work_dir is not None:
                remove_tree(self._work_dir)
                self._work_dir = None
            atexit.unregister(self.close)

    def _open(self) -> Launcher:
        if self._launcher is None:
            # Starting processes needs modules that a command without runs should not pay for.
            from aotidoctor.runner.launch import Launcher  # noqa: PLC0415

            self._work_dir = make_work_dir(self._environ)
            self._launcher = Launcher(
                python=self._python,
                environ=self._environ,
                work_dir=self._work_dir,
                start_timeout=self._start_timeout,
                preload=self._preload,
            )
        return self._launcher

    def _drop(self, pending: Pending) -> None:
        if not pending.buried:
            _bury(pending, None)
        pending.child.watch.close()
        if self._launcher is None or not self._launcher.needs(pending.run_dir):
            pending.run_dir.remove()
        self._pending.pop(pending.id, None)


def _bury(pending: Pending, limit: float | None) -> End:
    """Kill all that is left of a run and take the wait status. A process that nothing can kill is left alone."""
    child = pending.child
    kill_all(child.watch.pid, pending.run_dir.token)
    pending.native.close()
    status = peak = None
    if child.watch.wait(_UNKILLABLE_AFTER):
        # When the warm worker died, its children died with it and nobody knows how.
        with suppress(ForkServerLostError):
            status, peak = child.reap()
    pending.buried = True
    return End(status=status, peak_rss=peak, limit=limit, oom=risen(pending.oom_before, oom_kills()))


def _outcome(pending: Pending, end: End, readout: Readout, stdout: Output, stderr: Output) -> Outcome:
    trace = read_trace(pending.run_dir.path, readout.result)
    result, malformed = sound(pending.request.job, readout.result)
    (stdout_tail, stdout_bytes), (stderr_tail, stderr_bytes) = stdout.read(), stderr.read()
    return Outcome(
        id=pending.id,
        request=pending.request,
        ending=classify(end, readout),
        stage=readout.stage,
        error=readout.error or readout.fatal,
        result=result,
        malformed=malformed,
        stages=readout.seconds(),
        warnings=readout.remarks(),
        stdout_tail=stdout_tail,
        stderr_tail=stderr_tail,
        stdout_bytes=stdout_bytes,
        stderr_bytes=stderr_bytes,
        seconds=time.monotonic() - pending.began,
        argv=pending.child.argv,
        forked=pending.child.forked,
        peak_rss=end.peak_rss,
        trace=trace,
        tool_output=read_tool_output(pending.run_dir.path) if pending.request.wrapper else "",
        debugger_output=pending.native.output,
        debugger_problem=pending.native.problem,
    )


def _not_started(run_id: str, request: Request, error: OSError | ForkServerLostError) -> Outcome:
    cause: ChildError | None = error.error if isinstance(error, ForkServerLostError) else None
    return Outcome(id=run_id, request=request, ending=NotStarted(reason=str(error)), stage="start", error=cause)
