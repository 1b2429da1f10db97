"""Run a program of the user's as if nobody looked, and tell how it ended.

What it may notice: its parent is us, and a terminal for its output is a pseudo terminal. Everything else is as it would
be: process group, signals, environment, limits, descriptors. Whatever outlives it goes on writing where it wrote: a
process of ours stays to pass that on.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from aotidoctor.model.run import Ending, Exited, NotStarted, TimedOut
from aotidoctor.model.watched import Program, Seen, Watched
from aotidoctor.runner.ending import End as RunEnd
from aotidoctor.runner.ending import classify
from aotidoctor.runner.memory import oom_kills, risen
from aotidoctor.runner.process import send
from aotidoctor.runner.readout import Readout
from aotidoctor.runner.watch_proc import Observer
from aotidoctor.runner.watch_signals import ENDING, End, Witness, follow, reap
from aotidoctor.runner.watch_start import ExecError, hold_signals, release_signals, start
from aotidoctor.runner.watch_streams import Way, make_ways, occupy_closed

# A program whose time is up is asked first.
_ASKED_S = 3.0
_UNKILLABLE_S = 5.0


def watch(program: Program, environ: Mapping[str, str], *, keep: bool = False) -> Watched:
    """Run it to its end. Its output is read back only where it failed, or with ``keep``."""
    ways = make_ways(occupy_closed())
    before, began, started = oom_kills(), time.monotonic(), time.time()
    signals = hold_signals()
    try:
        pid = start(program, ways, signals, environ)
        witness = Witness(signals.relayed, pid)
    except (ExecError, OSError) as error:
        release_signals(signals)
        return refused(program, error, started)
    observer = Observer(pid, {**environ, **program.env}.get("TMPDIR") or "/tmp")  # noqa: S108 - where the loader goes
    stacks: tuple[str, str | None] = ("", None)
    try:
        observer.start()
        for way in ways:
            way.start()
        end = follow(pid, signals, witness, limit=program.limit, on_resize=partial(_resize, ways))
        over = program.limit if end.status is None else None
        if over is not None:
            stacks = _stop(pid, observer, end, environ)
        seen = observer.finish()
    finally:
        witness.close()
        release_signals(signals)
    for way in ways:
        way.finish()
    _leave_pump(ways)
    oom = risen(before, oom_kills()) if end.status is not None and os.WIFSIGNALED(end.status) else None
    ending = ending_of(end, over, oom)
    if any(way.reader_gone for way in ways):
        end.asked.append(int(signal.SIGPIPE))
    wanted = keep or not is_good(ending, tuple(end.asked))
    return Watched(
        argv=program.argv,
        ending=ending,
        status=end.status,
        pid=pid,
        seconds=time.monotonic() - began,
        started=started,
        peak_rss=end.peak_rss,
        streams=tuple(way.stream() for way in ways) if wanted else (),
        seen=seen,
        asked=tuple(end.asked),
        debugger_output=stacks[0],
        debugger_problem=stacks[1],
        oom=oom,
    )


def _resize(ways: tuple[Way, ...]) -> None:
    for way in ways:
        way.resize()


def refused(program: Program, error: ExecError | OSError, started: float) -> Watched:
    """There was nothing to start."""
    return Watched(
        argv=program.argv,
        ending=NotStarted(reason=str(error)),
        exec_error=str(error),
        refused=error.status if isinstance(error, ExecError) else 126,
        started=started,
        seen=Seen(),
    )


def ending_of(end: End, over: float | None, oom: str | None) -> Ending:
    """How a program of the user's ended: it writes no done-marker, its exit status says all."""
    if over is not None:
        return TimedOut(limit=over)
    return classify(RunEnd(status=end.status, oom=oom), Readout(done=end.status == 0))


def is_good(ending: Ending, asked: tuple[int, ...]) -> bool:
    """Exit status 0, or an end that somebody asked for."""
    match ending:
        case Exited(code=code):
            return code == 0 or (code - 128) in asked or (bool(asked) and code == 1 and int(signal.SIGINT) in asked)
        case _:
            number = getattr(ending, "signal", None)
            return number in asked and number in (*ENDING, signal.SIGPIPE)


def die_as(watched: Watched) -> int:
    """End by the signal that ended the program, without a core of our own; the exit status where it was none."""
    if isinstance(watched.ending, TimedOut):
        return 124
    if watched.status is None:
        return watched.refused
    if not os.WIFSIGNALED(watched.status):
        return os.WEXITSTATUS(watched.status)
    number = os.WTERMSIG(watched.status)
    _no_core()
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    # A signal that does not end this process, for whatever reason: what a shell would say.
    return 128 + number


def _no_core() -> None:
    import ctypes  # noqa: PLC0415 - for an end by a signal only
    import resource  # noqa: PLC0415 - likewise

    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    set_dumpable = 4
    ctypes.CDLL(None).prctl(set_dumpable, 0, 0, 0, 0)


def _stop(pid: int, observer: Observer, end: End, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """At the time limit: where it stands, then its end, and that of all it started."""
    from aotidoctor.runner.watch_stacks import standing  # noqa: PLC0415 - rarely needed

    stacks = standing(observer.seen().holder or pid, environ)
    below = observer.processes()
    send(pid, signal.SIGTERM)
    if not reap(pid, _ASKED_S, end):
        for one in (pid, *below):
            send(one, signal.SIGKILL)
        reap(pid, _UNKILLABLE_S, end)
    for one in observer.processes():
        send(one, signal.SIGKILL)
    return stacks


def _leave_pump(ways: tuple[Way, ...]) -> None:
    """Leave a process that passes on what others still write, as they could without us."""
    kept = [fd for way in ways for fd in way.descriptors()]
    if not kept or os.fork():
        return
    try:
        os.setsid()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if number != signal.SIGTERM else signal.SIG_DFL)
        _close_all_but(kept)
        _pump_all([way for way in ways if way.left_open])
    finally:
        os._exit(0)


def _pump_all(ways: list[Way]) -> None:
    import threading  # noqa: PLC0415 - has been imported for the copying

    threads = [threading.Thread(target=way.pump) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _close_all_but(kept: list[int]) -> None:
    bounds = sorted({-1, *kept, min(os.sysconf("SC_OPEN_MAX"), 1 << 16)})
    for low, high in itertools.pairwise(bounds):
        os.closerange(low + 1, high)
