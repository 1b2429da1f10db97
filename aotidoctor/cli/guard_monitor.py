"""Run the process beside a guarded program: wait for its messages or its death, and report.

Started by ``aotidoctor.runner.helper_processes``; no command. Messages are lines of JSON on its stdin: first the
identity of the program, then what it raised, or that the block has ended well. A program that ends without the last
one died inside of the block: the cause is in faulthandler's file, or the kernel knows it, if asked soon enough.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.record import as_list, text_of
from aotidoctor.model.run import Ending, Exited, OutOfMemory, Signalled, Stream, StreamKind, WatchedProgram
from aotidoctor.runner.helper_processes import MONITOR_FD
from aotidoctor.runner.processes import ProcessObserver, first_increase, oom_kills

if TYPE_CHECKING:
    from aotidoctor.model.inputs import InputSet
    from aotidoctor.model.record import JsonObject

_FATAL = re.compile(r"^Fatal Python error: (.+)$", re.MULTILINE)
_SIGNALS = {
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Floating-point exception": signal.SIGFPE,
    "Floating point exception": signal.SIGFPE,
    "Illegal instruction": signal.SIGILL,
}
_DUMPED = 0x80


def main() -> None:
    """Look after one block of one program."""
    try:
        _main()
    except Exception as error:  # noqa: BLE001 - nobody is there to be told a traceback
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"aotidoctor: guard: no report: {type(error).__name__}: {error}\n")


def _main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines = _Lines()
    hello = lines.next(None)
    if hello is None:
        return
    pid = int(str(hello["pid"]))
    began, before = time.time(), oom_kills()
    ended = _end_of(pid)
    observer = ProcessObserver(pid, os.environ.get("TMPDIR") or "/tmp", without=os.getpid())  # noqa: S108 - the loader's
    observer.start()
    message = lines.next(ended)
    status = None if message is not None else _status_of(pid)
    seen = observer.finish()
    if message is not None and "raised" not in message:
        return
    room = str(hello["room"])
    faults = _text(f"{room}/faults")
    if message is None:
        ending = _ending(status, faults, first_increase(before, oom_kills()))
        if ending is None:
            _tidy_up(room)
            return
        text = faults
    else:
        exit_code = message["status"]
        # The program may go on after an exception.
        ending, text = (
            Exited(code=1 if exit_code is None else int(str(exit_code)), done=exit_code is None),
            str(message["raised"]),
        )
    stream = Stream(name="stderr", kind=StreamKind.FILE, head=text.encode(), size=len(text.encode()))
    watched = WatchedProgram(
        argv=tuple(str(word) for word in as_list(hello["argv"])),
        ending=ending,
        status=1 if status is None else status,
        pid=pid,
        seconds=time.time() - began,
        started=began,
        streams=(stream,),
        seen=seen,
    )
    try:
        _report(watched, hello, message or {}, room)
    finally:
        if message is None:
            _tidy_up(room)
        else:
            with contextlib.suppress(OSError):
                os.write(MONITOR_FD, b".")


def _tidy_up(room: str) -> None:
    """The program is gone, and cannot do it."""
    import shutil

    shutil.rmtree(room, ignore_errors=True)


def _report(watched: WatchedProgram, hello: JsonObject, message: JsonObject, room: str) -> None:
    # A block that ends well does not pay for these.
    from aotidoctor.cli.options import make_show
    from aotidoctor.cli.watch_command import show_on_stderr
    from aotidoctor.commands.watch import watch_report as watching
    from aotidoctor.reports.redact.redactor import redact_private
    from aotidoctor.runner.core_file import examine_core

    quiet = bool(hello["quiet"])
    with contextlib.suppress(OSError):
        os.chdir(str(hello["cwd"]))
    show = make_show((), report=[str(spec) for spec in as_list(hello["reports"])], quiet=quiet)
    request = watching.WatchRequest(
        package=text_of(hello["package"]),
        live=_live(message.get("live")),
        # What runs the package again is not for a program that is waiting.
        checked_inputs=text_of(hello["inputs"]),
        no_again="",
        command="guard",
    )
    made = watching.report_on_program(
        examine_core(watched, os.environ, room), request, argv=watched.argv, environ=os.environ
    )
    show_on_stderr(made, redact_private(made, os.environ) if hello["redact"] else made, show, printed=not quiet)


def _end_of(pid: int) -> int | None:
    """A descriptor that becomes readable at its end; None where that is past, or there are none here."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        # The Python of conda has no such function.
        return None


def _ending(status: int | None, faults: str, oom: str | None) -> Ending | None:
    """How the program ended; None where it is not known, or was no failure."""
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL and oom is not None:
            return OutOfMemory(reason=oom)
        return Signalled(signal=number, name=signal.Signals(number).name, core_dumped=bool(status & _DUMPED))
    if (fatal := _FATAL.search(faults)) is not None and fatal[1] in _SIGNALS:
        number = _SIGNALS[fatal[1]]
        return Signalled(signal=int(number), name=number.name)
    if status is not None and os.WIFEXITED(status) and os.WEXITSTATUS(status):
        return Exited(code=os.WEXITSTATUS(status), done=False)
    return None if oom is None else OutOfMemory(reason=oom)


def _status_of(pid: int) -> int | None:
    """The wait status of a process that has ended and that nobody has waited for yet."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[49]) if len(fields) > 49 and fields[0] == "Z" else None


class _Lines:
    """Messages from the program."""

    def __init__(self) -> None:
        self._data = b""

    def next(self, ended: int | None) -> JsonObject | None:
        """The next message; None when there will be none, or when the process of descriptor ``ended`` has ended."""
        poll = select.poll()
        poll.register(MONITOR_FD, select.POLLIN)
        if ended is not None:
            poll.register(ended, select.POLLIN)
        while b"\n" not in self._data:
            ready = {fd for fd, _ in poll.poll()}
            if MONITOR_FD not in ready:
                return None
            data = os.read(MONITOR_FD, 1 << 16)
            if not data:
                # It closes its end when it dies, a moment before it is dead.
                if ended is not None:
                    select.select([ended], [], [], 5.0)
                return None
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        message: JsonObject = json.loads(line)
        return message


def _live(text: object) -> InputSet | None:
    if not isinstance(text, str):
        return None
    from aotidoctor.commands.live_inputs import unpack_inputs

    return unpack_inputs(text)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
