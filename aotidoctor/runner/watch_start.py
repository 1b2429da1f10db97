"""Start a program as a shell would, with nothing of ours left in it.

It stays in our process group and session, so that a terminal's keys, a pipeline and job control work as without us.
Descriptors that we inherited go on to it; signals that were ignored stay ignored. It dies with us.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress

from aotidoctor.model.record import record
from aotidoctor.model.watched import Program
from aotidoctor.runner.watch_streams import Way

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
class Signals:
    """How signals stood before: ``mask`` was blocked; ``relayed`` are those to pass on, blocked from now on."""

    mask: frozenset[int]
    relayed: frozenset[int]
    children_ignored: bool


def hold_signals() -> Signals:
    """Block what is to be passed on, so that it waits for us; what was ignored stays ignored."""
    usable = {number for number in signal.valid_signals() if number not in _OURS}
    relayed = {number for number in usable if signal.getsignal(number) is not signal.SIG_IGN}
    ignored = signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if ignored:
        # Otherwise nobody would be told how the program ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, relayed | {signal.SIGCHLD})
    return Signals(
        mask=frozenset(int(one) for one in mask),
        relayed=frozenset(int(one) for one in relayed),
        children_ignored=ignored,
    )


def release_signals(signals: Signals) -> None:
    """As it was before."""
    signal.pthread_sigmask(signal.SIG_SETMASK, signals.mask)
    if signals.children_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def start(
    program: Program,
    ways: tuple[Way, ...],
    signals: Signals,
    environ: Mapping[str, str],
    *,
    before: Callable[[], None] | None = None,
) -> int:
    """Start it; its process number. Call this before there are threads. ``before`` is called in the new process.

    Raises:
        ExecError: there is nothing to execute.
        OSError: no process could be made.
    """
    parent = os.getpid()
    libc = ctypes.CDLL(None)
    told, tell = os.pipe()
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
            os.write(tell, struct.pack("i", error.errno or errno.EINVAL))
        finally:
            os._exit(NOT_FOUND)
    os.close(tell)
    answer = os.read(told, 4)
    os.close(told)
    if len(answer) == 4:
        os.waitpid(pid, 0)
        raise ExecError(program.argv[0], struct.unpack("i", answer)[0])
    return pid


def _become(program: Program, ways: tuple[Way, ...], signals: Signals, environ: Mapping[str, str], parent: int) -> None:
    """In the child: put everything in its place and execute the program."""
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
    _reset_signals(signals)
    _execute(program.argv, env)


def _reset_signals(signals: Signals) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        # Python ignores them for itself.
        signal.signal(number, signal.SIG_DFL)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signals.children_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, signals.mask)


def _execute(argv: tuple[str, ...], env: dict[str, str]) -> None:
    try:
        os.execvpe(argv[0], argv, env)  # noqa: S606 - an argument vector, no shell
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # A script without its first line, as a shell takes it.
        os.execve("/bin/sh", ("sh", argv[0], *argv[1:]), env)  # noqa: S606 - likewise
