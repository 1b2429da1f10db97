"""Between the program and those who send us signals: pass on, stop with it, go on with it, and wait for its end.

A signal that the terminal sends reaches the program by itself, since it is in the same process group; so does one that
is sent to the group, or to all of a service. Only what was sent to us alone is passed on, or the program would get it
twice. Who else got it is told by a witness: a process in our group that does nothing but listen.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aotidoctor.runner.proc_files import is_stopped
from aotidoctor.runner.process import send
from aotidoctor.runner.watch_start import Signals

_SI_KERNEL = 0x80
# How long after us a witness in the same group may be told.
_SAME_MOMENT_S = 0.03
_LOOK_EVERY_S = 1.0
# What ends a program by somebody's wish.
ENDING = frozenset({int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGHUP)})


@dataclass(slots=True)
class End:
    """``status`` is the wait status, None when the time limit came first."""

    status: int | None
    peak_rss: int | None = None
    asked: list[int] = field(default_factory=list)


class Witness:
    """A process in our group that tells which signals it got, and wakes us when the program was woken without us."""

    def __init__(self, relayed: frozenset[int], program: int) -> None:
        self._told, tell = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _listen(tell, relayed, parent, program)
            finally:
                os._exit(0)
        os.close(tell)

    def has_got(self, number: int) -> bool:
        """Whether it got this signal just now."""
        deadline = time.monotonic() + _SAME_MOMENT_S
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._told], [], [], left)[0]:
                return False
            if number in os.read(self._told, 64):
                return True
        return False

    def close(self) -> None:
        """End it."""
        send(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._told)


def _listen(tell: int, relayed: frozenset[int], parent: int, program: int) -> None:
    most = os.sysconf("SC_OPEN_MAX")
    os.closerange(0, tell)
    os.closerange(tell + 1, min(most, 1 << 16))
    while os.getppid() == parent:
        got = signal.sigtimedwait(relayed, _LOOK_EVERY_S)
        if got is not None:
            os.write(tell, bytes([got.si_signo]))
        elif is_stopped(parent) and not is_stopped(program):
            # Nobody copies what it writes while we stand still.
            send(parent, signal.SIGCONT)


def follow(pid: int, signals: Signals, witness: Witness, *, limit: float | None, on_resize: Callable[[], None]) -> End:
    """Wait for the end of the program, or for its time limit."""
    end = End(None)
    deadline = None if limit is None else time.monotonic() + limit
    while True:
        left = _LOOK_EVERY_S if deadline is None else min(_LOOK_EVERY_S, deadline - time.monotonic())
        got = signal.sigtimedwait(signals.relayed | {signal.SIGCHLD}, max(0.0, left))
        if got is not None and got.si_signo != signal.SIGCHLD:
            _relay(pid, got, witness, end, on_resize)
        if _has_ended(pid, end):
            return end
        if deadline is not None and time.monotonic() >= deadline:
            return end


def reap(pid: int, seconds: float, end: End) -> bool:
    """Whether the program has ended within the time."""
    deadline = time.monotonic() + seconds
    while not _has_ended(pid, end):
        if time.monotonic() >= deadline:
            return False
        signal.sigtimedwait({signal.SIGCHLD}, 0.02)
    return True


def _has_ended(pid: int, end: End) -> bool:
    got, status, usage = os.wait4(pid, os.WNOHANG | os.WUNTRACED)
    if got == 0:
        return False
    if os.WIFSTOPPED(status):
        # Whoever waits for us shall see what they would have seen.
        os.kill(os.getpid(), signal.SIGSTOP)
        send(pid, signal.SIGCONT)
        return False
    end.status, end.peak_rss = status, usage.ru_maxrss * 1024
    return True


def _relay(pid: int, got: signal.struct_siginfo, witness: Witness, end: End, on_resize: Callable[[], None]) -> None:
    number = got.si_signo
    if number in ENDING:
        end.asked.append(number)
    if number == signal.SIGWINCH:
        # The program may have asked for the size before ours was right.
        on_resize()
    elif got.si_code == _SI_KERNEL or witness.has_got(number):
        return
    send(pid, number)
