"""Run a program of the user's without changing what it sees, pass signals on, and report how it ended.

What the program may notice: its parent is us, and a terminal for its output is a pseudo terminal. Everything else is
as it would be: process group, signals, environment, limits, descriptors. Whatever outlives it goes on writing where
it wrote: a process of ours stays to pass that on.

The program is started as a shell would start it. It stays in our process group and session, so that a terminal's
keys, a pipeline and job control work as without us. Descriptors that we inherited go on to it; signals that were
ignored stay ignored. It dies with us.

A signal that the terminal sends reaches the program by itself, since it is in the same process group; so does one
that is sent to the group, or to all of a service. Only what was sent to us alone is passed on, or the program would
get it twice. Who else got it is known from a witness: a process in our group that does nothing but listen.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import resource
import select
import signal
import struct
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from aotidoctor.model.record import record
from aotidoctor.model.run import (
    DEFAULT_TMP,
    Ending,
    Exited,
    NotStarted,
    ProcessFacts,
    ProgramToWatch,
    TimedOut,
    WatchedProgram,
)
from aotidoctor.runner.child_ending import ChannelReadout, classify_ending, send_signal
from aotidoctor.runner.child_ending import ProcessEnd as RunEnd
from aotidoctor.runner.processes import ProcessObserver, first_increase, is_stopped, oom_kills
from aotidoctor.runner.watch_streams import PassedStream, make_passed_streams, occupy_closed

# The start.
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_PR_SET_PDEATHSIG = 1
_PR_SET_PTRACER = 0x59616D61
# What only the kernel sends to one process, or what has a meaning for ourselves.
_OURS = {
    signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL,
    signal.SIGTRAP, signal.SIGSYS, signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE, signal.SIGXCPU, signal.SIGXFSZ,
    signal.SIGURG,
}  # fmt: skip


class ExecError(Exception):
    """The program could not be executed; ``status`` is what a shell would end with."""

    def __init__(self, program: str, number: int) -> None:
        super().__init__(f"{program}: {os.strerror(number)}")
        self.status = NOT_FOUND if number == errno.ENOENT else NOT_EXECUTABLE


@record
class HeldSignals:
    """The signals as they were before: ``mask`` was blocked; ``relayed`` are those to pass on, blocked from now on."""

    mask: frozenset[int]
    relayed: frozenset[int]
    children_ignored: bool


def hold_signals() -> HeldSignals:
    """Block what is to be passed on, so that it waits for us; what was ignored stays ignored."""
    usable = {number for number in signal.valid_signals() if number not in _OURS}
    relayed = {number for number in usable if signal.getsignal(number) is not signal.SIG_IGN}
    ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if ignored:
        # Otherwise the kernel would not report how the program ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, relayed | {signal.SIGCHLD})
    return HeldSignals(
        mask=frozenset(int(one) for one in mask),
        relayed=frozenset(int(one) for one in relayed),
        children_ignored=ignored,
    )


def release_signals(signals: HeldSignals) -> None:
    """Restore the signals as ``hold_signals`` found them."""
    signal.pthread_sigmask(signal.SIG_SETMASK, signals.mask)
    if signals.children_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def start_program(
    program: ProgramToWatch,
    ways: tuple[PassedStream, ...],
    signals: HeldSignals,
    environ: Mapping[str, str],
    *,
    before: Callable[[], None] | None = None,
) -> int:
    """Start it and return its process number. Call this before there are threads.

    ``before`` is called in the new process.

    Raises:
        ExecError: there is nothing to execute.
        OSError: no process could be made.
    """
    parent = os.getpid()
    libc = ctypes.CDLL(None)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if program.limit is not None:
                # With Yama only a parent may look at where a program stands, and gdb is a sibling.
                libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(parent), 0, 0, 0)
            if before is not None:
                before()
            if os.getppid() == parent:
                _become(program, ways, signals, environ, parent)
        except OSError as error:
            os.write(write_end, struct.pack("i", error.errno or errno.EINVAL))
        finally:
            os._exit(NOT_FOUND)
    os.close(write_end)
    answer = os.read(read_end, 4)
    os.close(read_end)
    if len(answer) == 4:
        os.waitpid(pid, 0)
        raise ExecError(program.argv[0], struct.unpack("i", answer)[0])
    return pid


def _become(
    program: ProgramToWatch,
    ways: tuple[PassedStream, ...],
    signals: HeldSignals,
    environ: Mapping[str, str],
    parent: int,
) -> None:
    """Put everything in its place and execute the program, in the child."""
    for way in ways:
        for fd in way.fds if way.theirs is not None else ():
            os.dup2(way.theirs or 0, fd, inheritable=True)
    if program.core:
        with suppress(ValueError, OSError):
            most = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    env = {**environ, **program.env}
    if env.get("LISTEN_PID") == str(parent):
        # A service that is handed its sockets looks whether they are meant for it.
        env["LISTEN_PID"] = str(os.getpid())
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        # Python ignores them for itself.
        signal.signal(number, signal.SIG_DFL)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signals.children_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, signals.mask)
    try:
        os.execvpe(program.argv[0], program.argv, env)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without its first line, as a shell takes it.
        os.execve("/bin/sh", ("sh", program.argv[0], *program.argv[1:]), env)


# Signals, and the wait for the end.
_SI_KERNEL = 0x80
# How long after us the signal may reach a witness in the same group.
_SAME_MOMENT_S = 0.03
_LOOK_EVERY_S = 1.0
# Signals by which somebody ends a program on purpose.
ENDING = frozenset({int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGHUP)})


@dataclass(slots=True)
class ProgramEnd:
    """``status`` is the wait status, None when the time limit came first; ``requests`` are signals to end it."""

    status: int | None
    peak_rss: int | None = None
    requests: list[int] = field(default_factory=list)


class SignalWitness:
    """A process in our group that reports its signals, and wakes us when the program was woken without us."""

    def __init__(self, relayed: frozenset[int], program: int) -> None:
        self._read_end, write_end = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                most = os.sysconf("SC_OPEN_MAX")
                os.closerange(0, write_end)
                os.closerange(write_end + 1, min(most, 1 << 16))
                while os.getppid() == parent:
                    got = signal.sigtimedwait(relayed, _LOOK_EVERY_S)
                    if got is not None:
                        os.write(write_end, bytes([got.si_signo]))
                    elif is_stopped(parent) and not is_stopped(program):
                        # Nobody copies what it writes while we stand still.
                        send_signal(parent, signal.SIGCONT)
            finally:
                os._exit(0)
        os.close(write_end)

    def has_got(self, number: int) -> bool:
        """Whether it got this signal just now."""
        deadline = time.monotonic() + _SAME_MOMENT_S
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._read_end], [], [], left)[0]:
                return False
            if number in os.read(self._read_end, 64):
                return True
        return False

    def close(self) -> None:
        """End it."""
        send_signal(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._read_end)


def follow_program(
    pid: int, signals: HeldSignals, witness: SignalWitness, *, limit: float | None, on_resize: Callable[[], None]
) -> ProgramEnd:
    """Wait for the end of the program, or for its time limit."""
    end = ProgramEnd(None)
    deadline = None if limit is None else time.monotonic() + limit
    while True:
        left = _LOOK_EVERY_S if deadline is None else min(_LOOK_EVERY_S, deadline - time.monotonic())
        got = signal.sigtimedwait(signals.relayed | {signal.SIGCHLD}, max(0.0, left))
        if got is not None and got.si_signo != signal.SIGCHLD:
            number = got.si_signo
            if number in ENDING:
                end.requests.append(number)
            if number == signal.SIGWINCH:
                # The program may have read the size before ours was right.
                on_resize()
            if number == signal.SIGWINCH or not (got.si_code == _SI_KERNEL or witness.has_got(number)):
                send_signal(pid, number)
        if _has_ended(pid, end):
            return end
        if deadline is not None and time.monotonic() >= deadline:
            return end


def reap_program(pid: int, seconds: float, end: ProgramEnd) -> bool:
    """Whether the program has ended within the time."""
    deadline = time.monotonic() + seconds
    while not _has_ended(pid, end):
        if time.monotonic() >= deadline:
            return False
        signal.sigtimedwait({signal.SIGCHLD}, 0.02)
    return True


def _has_ended(pid: int, end: ProgramEnd) -> bool:
    got, status, usage = os.wait4(pid, os.WNOHANG | os.WUNTRACED)
    if got == 0:
        return False
    if os.WIFSTOPPED(status):
        # Whoever waits for us shall see what they would have seen.
        os.kill(os.getpid(), signal.SIGSTOP)
        send_signal(pid, signal.SIGCONT)
        return False
    end.status, end.peak_rss = status, usage.ru_maxrss * 1024
    return True


# A program whose time is up gets SIGTERM first.
_TERM_S = 3.0
_UNKILLABLE_S = 5.0


def run_watched(program: ProgramToWatch, environ: Mapping[str, str], *, keep: bool = False) -> WatchedProgram:
    """Run the program to its end. Its output is read back only where it failed, or with ``keep``."""
    ways = make_passed_streams(occupy_closed())
    before, began, started = oom_kills(), time.monotonic(), time.time()
    signals = hold_signals()
    try:
        pid = start_program(program, ways, signals, environ)
        witness = SignalWitness(signals.relayed, pid)
    except (ExecError, OSError) as error:
        release_signals(signals)
        return not_started(program, error, started)
    observer = ProcessObserver(pid, {**environ, **program.env}.get("TMPDIR") or DEFAULT_TMP)
    stacks: tuple[str, str | None] = ("", None)
    try:
        observer.start()
        for way in ways:
            way.start()
        end = follow_program(pid, signals, witness, limit=program.limit, on_resize=partial(_resize, ways))
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
    oom = first_increase(before, oom_kills()) if end.status is not None and os.WIFSIGNALED(end.status) else None
    ending = program_ending(end, over, oom)
    if any(way.reader_gone for way in ways):
        end.requests.append(int(signal.SIGPIPE))
    with_streams = keep or not is_good_ending(ending, tuple(end.requests))
    return WatchedProgram(
        argv=program.argv,
        ending=ending,
        status=end.status,
        pid=pid,
        seconds=time.monotonic() - began,
        started=started,
        peak_rss=end.peak_rss,
        streams=tuple(way.stream() for way in ways) if with_streams else (),
        seen=seen,
        asked=tuple(end.requests),
        debugger_output=stacks[0],
        debugger_problem=stacks[1],
        oom=oom,
    )


def _resize(ways: tuple[PassedStream, ...]) -> None:
    for way in ways:
        way.resize()


def not_started(program: ProgramToWatch, error: ExecError | OSError, started: float) -> WatchedProgram:
    """The result where there was nothing to start."""
    return WatchedProgram(
        argv=program.argv,
        ending=NotStarted(reason=str(error)),
        exec_error=str(error),
        refused=error.status if isinstance(error, ExecError) else 126,
        started=started,
        seen=ProcessFacts(),
    )


def program_ending(end: ProgramEnd, over: float | None, oom: str | None) -> Ending:
    """The ending of a program of the user's: it writes no done-marker, its exit status says all."""
    if over is not None:
        return TimedOut(limit=over)
    return classify_ending(RunEnd(status=end.status, oom=oom), ChannelReadout(done=end.status == 0))


def is_good_ending(ending: Ending, requests: tuple[int, ...]) -> bool:
    """Whether the exit status is 0, or the end one of the signals ``requests``."""
    match ending:
        case Exited(code=code):
            return code == 0 or (code - 128) in requests or (code == 1 and int(signal.SIGINT) in requests)
        case _:
            number = getattr(ending, "signal", None)
            return number in requests and number in (*ENDING, signal.SIGPIPE)


def exit_like(watched: WatchedProgram) -> int:
    """End by the signal that ended the program, without a core of our own; the exit status where it was none."""
    if isinstance(watched.ending, TimedOut):
        return 124
    if watched.status is None:
        return watched.refused
    if not os.WIFSIGNALED(watched.status):
        return os.WEXITSTATUS(watched.status)
    number = os.WTERMSIG(watched.status)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    set_dumpable = 4
    ctypes.CDLL(None).prctl(set_dumpable, 0, 0, 0, 0)
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    # A signal that does not end this process, for whatever reason: the exit status of a shell.
    return 128 + number


def _stop(pid: int, observer: ProcessObserver, end: ProgramEnd, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """The stacks of the program at the time limit; then end it with all it started."""
    from aotidoctor.runner.core_file import running_sections

    stacks = running_sections(observer.facts_so_far().holder or pid, environ)
    below = observer.processes()
    send_signal(pid, signal.SIGTERM)
    if not reap_program(pid, _TERM_S, end):
        for one in (pid, *below):
            send_signal(one, signal.SIGKILL)
        reap_program(pid, _UNKILLABLE_S, end)
    for one in observer.processes():
        send_signal(one, signal.SIGKILL)
    return stacks


def _leave_pump(ways: tuple[PassedStream, ...]) -> None:
    """Leave a process that passes on what others still write, as they could without us."""
    used = [fd for way in ways for fd in way.descriptors()]
    if not used or os.fork():
        return
    try:
        os.setsid()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if number != signal.SIGTERM else signal.SIG_DFL)
        bounds = sorted({-1, *used, min(os.sysconf("SC_OPEN_MAX"), 1 << 16)})
        for low, high in itertools.pairwise(bounds):
            os.closerange(low + 1, high)
        threads = [threading.Thread(target=way.pump) for way in ways if way.left_open]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        os._exit(0)
