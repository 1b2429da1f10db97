"""Run requests, each in a process of its own, and report how each ended.

A request is forked off a warm process where that is sound. It gets a new interpreter when it asks for one, when it is
for another device than the CPU (a driver must not be forked), and when its environment changes something that
libraries read once, at their start.

Nothing stays behind: files are removed after each run, processes are found by group and by marker and killed, a warm
worker whose parent vanished cleans up by itself, and every child dies with its parent.

The call trace is a ring in a file of the run directory. It is data from a process that may have been damaged.
"""

from __future__ import annotations

import atexit
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.answers import drop_malformed
from aotidoctor.model.record import JsonObject, JsonValue
from aotidoctor.model.run import TRACE_FILE, ChildError, Ending, NotStarted, Outcome, Request, Trace, TracedCall
from aotidoctor.runner.child_ending import (
    ChannelReadout,
    ProcessEnd,
    classify_ending,
    defer_interrupts,
    kill_all,
    read_channel,
)
from aotidoctor.runner.processes import first_increase, oom_kills
from aotidoctor.runner.run_dir import (
    RunDir,
    make_run_dir,
    make_work_dir,
    read_tool_output,
    remove_tree,
    remove_unpacked,
)
from aotidoctor.runner.start_child import ForkServerLostError
from aotidoctor.runner.supervise import ChildOutput, NativeStacks, dump_stacks, wait_for_end

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from aotidoctor.runner.start_child import ChildLauncher, StartedChild


# The call trace that the child left.
_RECORD = struct.Struct("<IIQ")
_LARGEST = 64 * 1024 * 1024


def read_trace(run_dir: Path, result: JsonObject) -> Trace | None:
    """The trace of a run whose child put its layout into ``result``; None where there is none."""
    layout = result.pop("trace", None)
    marks = result.pop("trace_marks", None)
    if not isinstance(layout, dict):
        return None
    if layout.get("problem"):
        return Trace(problem=str(layout["problem"]))
    try:
        with (run_dir / TRACE_FILE).open("rb") as stream:
            data = stream.read(_LARGEST)
        return _decode(data, layout, marks)
    except (OSError, struct.error, TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        return Trace(problem=f"the trace cannot be read: {type(error).__name__}: {error}")


def _decode(data: bytes, layout: JsonObject, marks: JsonValue) -> Trace:
    names = layout["names"]
    if not isinstance(names, list):
        raise TypeError("no names")
    header, records = int(str(layout["header"])), int(str(layout["records"]))
    ticks = float(str(layout["ticks_per_s"]))
    total = int(struct.unpack_from("<Q", data)[0])
    held = min(total, records)
    read = [_RECORD.unpack_from(data, header + 16 * (index % records)) for index in range(total - held, total)]
    began = read[0][2] if read else 0
    return Trace(
        calls=tuple(
            TracedCall(symbol=str(names[number]), argument=argument, at=(tick - began) / ticks)
            for number, argument, tick in read
            if number < len(names)
        ),
        total=total,
        slots=int(str(layout["slots"])),
        stamp=int(str(layout.get("stamp", 0))) / ticks,
        marks=tuple(mark for mark in marks if isinstance(mark, int)) if isinstance(marks, list) else (),
    )


OnEvent = Callable[[str, str], None]
"""Called with the id of a run and the stage it was last seen in, about ten times a second."""

OutputPair = tuple[ChildOutput, ChildOutput]
_UNKILLABLE_AFTER = 10.0


@dataclass(slots=True, kw_only=True)
class PendingRun:
    """A run that was started and not yet finished."""

    id: str
    request: Request
    run_dir: RunDir
    child: StartedChild
    native: NativeStacks
    oom_before: dict[str, int]
    began: float = field(default_factory=time.monotonic)
    buried: bool = False


class Runner:
    """Runs requests; a context manager.

    ``environ`` is the environment that the user's program would have. ``python`` is the interpreter of the worker.
    ``start_timeout`` bounds importing torch, in seconds; a request's own timeout begins after that. ``preload`` names
    modules that the warm worker imports together with torch. ``keep`` is called with the directory of each run after
    its end, before it is removed. ``place`` is the folder for the files of this process, without it what ``environ``
    names. One thread at a time may use a runner, and that thread must outlive the runs it
    starts (the kernel kills a child with the thread that made it). ``unseen`` is what its runs never show, in words.
    """

    unseen = ""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        python: str = sys.executable,
        on_event: OnEvent | None = None,
        start_timeout: float = 180.0,
        preload: tuple[str, ...] = (),
        keep: Callable[[str, Path], None] | None = None,
        place: str | None = None,
    ) -> None:
        """Start nothing yet."""
        self._environ = dict(environ)
        self._python = python
        self._on_event = on_event
        self._start_timeout = start_timeout
        self._preload = preload
        self._keep = keep
        self._place = place
        self._work_dir: Path | None = None
        self._launcher: ChildLauncher | None = None
        self._count = 0
        self._pending: dict[str, PendingRun] = {}
        atexit.register(self.close)

    def __enter__(self) -> Self:
        """The runner itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    @property
    def torch_version(self) -> str | None:
        """Version of torch that the warm worker imported; None when it has not yet, or could not."""
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
        return self.finish(started) if isinstance(started, PendingRun) else started

    def start(self, request: Request) -> PendingRun | Outcome:
        """Start one request without waiting for its end, so that several may run; an Outcome if it could not start."""
        self._count += 1
        run_id = f"R{self._count}"
        run_dir: RunDir | None = None
        pending: PendingRun | None = None
        try:
            launcher = self._open()
            tmp_base = {**self._environ, **request.env}.get("TMPDIR")
            run_dir = make_run_dir(self._work_dir or Path(), run_id, tmp_base)
            before = oom_kills()
            child = launcher.launch(request, run_dir)
            native = NativeStacks(request, run_dir, self._environ.get("PATH"))
            pending = PendingRun(
                id=run_id, request=request, run_dir=run_dir, child=child, native=native, oom_before=before
            )
        except (OSError, ForkServerLostError) as error:
            return unstarted_outcome(run_id, request, str(error), getattr(error, "error", None))
        finally:
            if pending is None and run_dir is not None:
                run_dir.remove()
        self._pending[run_id] = pending
        return pending

    def finish(self, pending: PendingRun) -> Outcome:
        """Wait for the end of a started request, kill what is left of it, and read what it reported."""
        streams = ChildOutput(pending.run_dir.file("stdout")), ChildOutput(pending.run_dir.file("stderr"))
        channel = pending.run_dir.file("channel.jsonl")
        on_event = self._on_event
        try:
            limit = wait_for_end(
                pending.child.watch,
                channel,
                limit=pending.request.timeout,
                start_limit=self._start_timeout,
                streams=streams,
                on_stage=None if on_event is None else lambda stage: on_event(pending.id, stage),
            )
            early = None
            if limit is not None and pending.native.was_dying(pending.child.watch):
                limit = None
            if limit is not None:
                # Before the stacks: their signal may wake the child up, and what it does then is not its own doing.
                early = read_channel(channel)
                pending.native.look(pending.child.watch.pid)
                dump_stacks(pending.child.watch, pending.run_dir)
            pending.native.finish()
            end = _bury(pending, limit)
            if self._keep is not None:
                self._keep(pending.id, pending.run_dir.path)
            readout = early or read_channel(channel)
            remove_unpacked(readout.result.get("unpacked"))
            keeper = readout.result.get("kept")
            if isinstance(keeper, int) and self._launcher is not None:
                self._launcher.keep(pending.child, pending.request, keeper, pending.run_dir)
            ending = classify_ending(end, readout)
            return replace(
                read_outcome(pending.id, pending.request, pending.run_dir, readout, ending=ending, streams=streams),
                seconds=time.monotonic() - pending.began,
                argv=pending.child.argv,
                forked=pending.child.forked,
                peak_rss=end.peak_rss,
                tool_output=read_tool_output(pending.run_dir.path) if pending.request.wrapper else "",
                debugger_output=pending.native.output,
                debugger_problem=pending.native.problem,
            )
        finally:
            self._drop(pending)

    @contextmanager
    def room(self) -> Iterator[Path]:
        """A folder for files of the caller, which goes at the end of the block, and if this process is killed in it.

        Raises:
            OSError: it cannot be made.
        """
        import tempfile

        # The warm worker removes the folder of a runner that was killed.
        self._open().warm()
        with tempfile.TemporaryDirectory(prefix="room-", dir=self._work_dir, ignore_cleanup_errors=True) as room:
            yield Path(room)

    def forget(self) -> None:
        """Release the loaded package that later requests would be forked from: its memory and its files."""
        if self._launcher is not None:
            self._launcher.forget()

    def close(self) -> None:
        """Kill everything and remove every file. May be called twice."""
        with defer_interrupts():
            for pending in list(self._pending.values()):
                self._drop(pending)
            if self._launcher is not None:
                self._launcher.close()
                self._launcher = None
            if self._work_dir is not None:
                remove_tree(self._work_dir)
                self._work_dir = None
            atexit.unregister(self.close)

    def _open(self) -> ChildLauncher:
        if self._launcher is None:
            # Starting processes needs modules that a command without runs should not pay for.
            from aotidoctor.runner.start_child import ChildLauncher

            named = {} if self._place is None else {"TMPDIR": self._place}
            self._work_dir = make_work_dir({**self._environ, **named})
            self._launcher = ChildLauncher(
                python=self._python,
                environ=self._environ,
                work_dir=self._work_dir,
                start_timeout=self._start_timeout,
                preload=self._preload,
            )
        return self._launcher

    def _drop(self, pending: PendingRun) -> None:
        if not pending.buried:
            _bury(pending, None)
        pending.child.watch.close()
        if self._launcher is None or not self._launcher.needs(pending.run_dir):
            pending.run_dir.remove()
        self._pending.pop(pending.id, None)


def _bury(pending: PendingRun, limit: float | None) -> ProcessEnd:
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
    return ProcessEnd(status=status, peak_rss=peak, limit=limit, oom=first_increase(pending.oom_before, oom_kills()))


def unstarted_outcome(run_id: str, request: Request, reason: str, error: ChildError | None = None) -> Outcome:
    """The outcome of a request for which no child could be started."""
    return Outcome(id=run_id, request=request, ending=NotStarted(reason=reason), stage="start", error=error)


def read_outcome(
    run_id: str, request: Request, run_dir: RunDir, readout: ChannelReadout, *, ending: Ending, streams: OutputPair
) -> Outcome:
    """What the files of an ended run say; each kind of run adds what it alone has."""
    trace = read_trace(run_dir.path, readout.result)
    result, malformed = drop_malformed(request.job, readout.result)
    (stdout_tail, stdout_bytes), (stderr_tail, stderr_bytes) = (stream.read() for stream in streams)
    return Outcome(
        id=run_id,
        request=request,
        ending=ending,
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
        trace=trace,
    )
