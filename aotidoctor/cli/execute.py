"""Run a command's work within its limits, with live progress, and turn its result into a document and exit status.

stdout gets exactly one document also when aotidoctor itself fails: what was raised becomes a report.

Limits: 3 s of CPU time and 300 MB over everything that a static command reads, the rendering of the report included. A
timer of CPU time looks every few milliseconds and interrupts what takes too long (a regular expression, too) by
``LimitReachedError``. The first time, the stage or check at work is left out and the others go on; what is left after
that has a small allowance each, and in the end the report is made of what is known. Ordinary files take a tenth of the
limit; what is bigger than 10 MB may take more, in proportion.

Progress: one line per probe on stderr with icon, name, seconds and verdict. While a probe runs, its line counts
seconds. Where there is no terminal, under CI or on a dumb one, each probe has a line when it starts and one when it
ends. ``--quiet`` writes nothing.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import shutil
import signal
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields, replace
from datetime import datetime, timezone
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, TextIO, final

import typer

from aotidoctor.api.option_arguments import use_plugins
from aotidoctor.cli.document_output import Show, render_documents, warn, write_documents, write_extras
from aotidoctor.cli.url_arguments import with_urls_restored, words_without_credentials
from aotidoctor.interruption import held, interruptible, requested_signal
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host
from aotidoctor.model.errors import CANNOT_EXAMINE, INTERNAL_ERROR, AotidoctorError, LimitReachedError, UsageError
from aotidoctor.model.evidence import FAILED_HERE, LIMIT_CODE, NotChecked, whereabouts
from aotidoctor.model.record import record
from aotidoctor.model.report import UNWRITTEN, Event, EventKind, OnEvent, Report
from aotidoctor.reports.redact.redactor import Redactor, redact_private
from aotidoctor.reports.text import exit_status, neutral
from aotidoctor.version import __version__

# Limits of CPU time and memory.
CPU_S, MEMORY = 3.0, 300 << 20
ORDINARY = 10 << 20
"""Bytes of input up to which the limits are these."""

_LOOK_S = 0.02
# Shares of the limits: reading and judging may take the first, with what is added at each interruption up to the
# second; the rest is for the report.
_WORK, _ALL_WORK, _MORE = 0.5, 0.6, 0.05
_RENDERED, _REPORT = 0.9, 0.25
_MOST_FILES = 2000
# Python and the modules of a command take less; a program that calls it may hold more by itself.
_START = 64 << 20


@record(kw_only=False, frozen=False)
class _Watchdog:
    """What may be taken from now on, in seconds of CPU time and bytes; ``scale`` 1 stands for ordinary files."""

    scale: float
    seconds: float
    memory: float
    last_seconds: float
    last_memory: float

    def look(self, _number: int, _frame: FrameType | None) -> None:
        """Interrupt what takes too much. Raises LimitReachedError."""
        seconds, memory = _cpu_seconds(), _resident()
        if seconds <= self.seconds and memory <= self.memory:
            return
        megabytes = MEMORY * self.scale / (1 << 20)
        text = f"{CPU_S * self.scale:.0f} s of CPU time" if seconds > self.seconds else f"{megabytes:.0f} MB of memory"
        final = seconds > self.last_seconds or memory > self.last_memory
        if final:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.seconds = max(self.seconds, seconds + _MORE * CPU_S * self.scale)
        self.memory = max(self.memory, memory + _MORE * MEMORY * self.scale)
        raise LimitReachedError(f"stopped so as to stay within {text}", final=final)

    def grow(self, size: int) -> None:
        """More input has come than was known of: a log on standard input."""
        more = size / ORDINARY
        self.scale += more
        self.seconds += more * CPU_S
        self.last_seconds += more * CPU_S


# Windows and WebAssembly have no timer of CPU time: what is read there has no limit but those of each reader.
_HAS_TIMER = hasattr(signal, "setitimer") and sys.platform != "emscripten"
_ACTIVE: list[_Watchdog] = []
# What the process held before the command: the report is made within the same bounds as the rest.
_BEFORE: list[int] = []


@contextmanager
def within_limits(paths: Sequence[str] | None = None) -> Iterator[None]:
    """Limit CPU time and memory of the block by the size of ``paths`` (None: the words). Raises LimitReachedError."""
    if not _HAS_TIMER or threading.current_thread() is not threading.main_thread():
        yield
        return
    scale = max(1.0, _size(_words() if paths is None else paths) / ORDINARY)
    start, memory, room, held = _cpu_seconds(), MEMORY * scale, CPU_S * scale, _memory_before()
    _BEFORE[:] = [held]
    watchdog = _Watchdog(
        scale=scale,
        seconds=start + _WORK * room,
        memory=held + _WORK * memory,
        last_seconds=start + _ALL_WORK * room,
        last_memory=held + _ALL_WORK * memory,
    )
    with _watch(watchdog):
        yield


@contextmanager
def report_limited(paths: Sequence[str] | None = None) -> Iterator[None]:
    """Limit the making of a report in the same way. Raises LimitReachedError."""
    if not _HAS_TIMER or threading.current_thread() is not threading.main_thread():
        yield
        return
    scale = max(1.0, _size(_words() if paths is None else paths) / ORDINARY)
    seconds, memory = _cpu_seconds() + _REPORT * CPU_S * scale, sum(_BEFORE) + _RENDERED * MEMORY * scale
    with _watch(_Watchdog(scale, seconds, memory, 0.0, 0.0)):
        yield


@contextmanager
def _watch(watchdog: _Watchdog) -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, watchdog.look)
    _ACTIVE.append(watchdog)
    signal.setitimer(signal.ITIMER_PROF, _LOOK_S, _LOOK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        _ACTIVE.remove(watchdog)


def count_stream_bytes(size: int) -> None:
    """Count bytes that came from a stream of unknown size."""
    for watchdog in _ACTIVE:
        watchdog.grow(size)


def _cpu_seconds() -> float:
    return time.process_time()


def _resident() -> int:
    """Bytes of memory that are not a file's. 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123 - asked fifty times a second
            pages = stream.read().split()
    except OSError:
        return 0
    return (int(pages[1]) - int(pages[2])) * mmap.PAGESIZE


def _memory_before() -> int:
    """What a process that does more than this command held before it; next to nothing for one that does not."""
    held = _resident()
    return held if held > _START else 0


def _words() -> list[str]:
    return [part for word in sys.argv[1:] for part in (word, word.partition("=")[2]) if part]


def _size(paths: Sequence[str]) -> int:
    """Bytes of the files that ``paths`` name, and of those in the folders among them."""
    total = 0
    for path in paths:
        with suppress(OSError, ValueError):
            status = Path(path).stat()
            total += _inside(path) if stat.S_ISDIR(status.st_mode) else status.st_size
    return total


def _inside(folder: str) -> int:
    total = seen = 0
    for place, _, names in os.walk(folder):
        for name in names[:_MOST_FILES]:
            with suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
        seen += len(names) + 1
        if seen > _MOST_FILES:
            break
    return total


# Live progress on stderr.
_CLEAR = "\r\x1b[2K"
_TICK = 0.25
# A stage that ends faster than this never shows: the lines would only flicker.
_PATIENCE = 0.4


def make_progress(stream: TextIO | None, environ: Mapping[str, str], *, quiet: bool, redact: bool = True) -> Progress:
    """A progress that writes to ``stream``: live on a terminal, else line by line; or a silent one."""
    live = is_live(stream, environ)
    color = live and "NO_COLOR" not in environ
    return Progress(
        None if quiet else stream,
        color=color,
        unicode=stream is not None and (stream.encoding or "").lower().replace("-", "") == "utf8",
        live=live,
        redactor=lru_cache(maxsize=1)(partial(Redactor.of, environ)) if redact else None,
    )


def is_live(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether ``stream`` is a terminal that is not dumb, and this is no CI."""
    if environ.get("CI", "").lower() not in ("", "0", "false") or environ.get("TERM") == "dumb":
        return False
    with contextlib.suppress(ValueError, OSError):
        return stream is not None and stream.isatty()
    return False


@final
class Progress:
    """Shows events; a context manager that clears the unfinished line at its end."""

    def __init__(
        self,
        stream: TextIO | None,
        *,
        color: bool = True,
        unicode: bool = True,
        live: bool = True,
        redactor: Callable[[], Redactor] | None = None,
    ) -> None:
        self._stream = stream
        self._live = live
        self._clear = _CLEAR if live else ""
        self._color = color
        self._unicode = unicode
        self._redactor = redactor
        self._lock = threading.Lock()
        self._current = ""
        self._since = 0.0
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Progress:
        """Start counting seconds, where there is somebody to see it."""
        if self._stream is not None and self._live:
            self._ticker = threading.Thread(target=self._tick, name="aotidoctor-progress", daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop, and leave no unfinished line behind."""
        self._stop.set()
        if self._ticker is not None:
            # A terminal that has been stopped lets nobody write.
            self._ticker.join(_PATIENCE)
        self._write(self._clear)

    def on_event(self, event: Event) -> None:
        """Show one event; never raises for a terminal that has gone away."""
        if self._stream is None:
            return
        with self._lock:
            match event.kind:
                case EventKind.STAGE | EventKind.PROBE_START:
                    self._current, self._since = event.name, time.monotonic()
                    if not self._live and event.kind is EventKind.PROBE_START:
                        self._write(f"  {self._dots()} {event.name}\n")
                case EventKind.PROBE_END | EventKind.TREATMENT:
                    self._current = ""
                    name = f"treat: {event.name}" if event.kind is EventKind.TREATMENT else event.name
                    mark, word, tint = {True: ("✓", "ok", "32"), False: ("✗", "x", "31"), None: ("·", "-", "2")}[
                        event.ok
                    ]
                    icon = mark if self._unicode else f"{word:<2}"
                    icon = f"\x1b[{tint}m{icon}\x1b[0m" if self._color else icon
                    # A verdict may quote what a child wrote.
                    hidden = self._redactor().redact_printed(event.verdict) if self._redactor else event.verdict
                    verdict = " ".join(hidden.split())
                    verdict = "".join(letter if letter.isprintable() else " " for letter in verdict)
                    if self._live and len(verdict) > (room := max(shutil.get_terminal_size().columns - 40, 20)):
                        verdict = verdict[: room - 1] + "…"
                    self._write(self._clear + f"  {icon} {name:<26} {event.seconds:6.2f} s  {verdict}" + "\n")

    def _dots(self) -> str:
        return "…" if self._unicode else ".."

    def _tick(self) -> None:
        while not self._stop.wait(_TICK):
            with self._lock:
                waited = time.monotonic() - self._since
                if self._current and waited >= _PATIENCE:
                    self._write(f"{_CLEAR}  {self._dots()} {self._current:<26} {waited:6.1f} s")

    def _write(self, text: str) -> None:
        write_live(self._stream, text)


def write_live(stream: TextIO | None, text: str) -> None:
    """Write at once; a terminal that has gone away is none."""
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()


Work = Callable[[OnEvent], Report]


def argv() -> tuple[str, ...]:
    """The command as it was given; a report states it."""
    return words_without_credentials(sys.argv)


def execute(command: str, path: str, show: Show, work: Work, *, static: bool = False) -> NoReturn:
    """Do the work, show its report, end with its exit status. ``path`` is what is examined (empty: nothing).

    ``static``: nothing is run, so CPU time and memory are limited by what there is to read.
    """
    environ = os.environ
    progress = make_progress(sys.stderr, environ, quiet=show.detail < 0, redact=show.redact)
    with held(), use_plugins(command, wanted=show.plugins):
        with within_limits() if static else nullcontext():
            report = report_of_work(command, path, work, progress)
        status = present_report(report, show, environ, static=static)
    raise typer.Exit(status)


def report_of_work(command: str, path: str, work: Work, progress: Progress) -> Report:
    """The report of ``work``, or one that says what went wrong. A usage error ends the process with status 2."""
    try:
        with interruptible(), progress:
            return with_urls_restored(work(progress.on_event))
    except UsageError as error:
        raise typer.BadParameter(neutral(str(error))) from error
    except KeyboardInterrupt:
        return interrupted_report(command, path)
    except LimitReachedError as reached:
        return with_left_out(stand_in_report(command, path), command, str(reached))
    except Exception as error:  # noqa: BLE001 - the guard of the whole program: its own failure is a report, too
        if isinstance(error, AotidoctorError) and error.exit_status == CANNOT_EXAMINE:
            return replace(stand_in_report(command, path), cannot_examine=str(error))
        return replace(stand_in_report(command, path), internal_error=traceback.format_exc())


def present_report(report: Report, show: Show, environ: Mapping[str, str], *, static: bool = False) -> int:
    """Redact, print, write; returns the exit status, which is 4 where what was asked for could not be written.

    Only ``extras`` of the report can be interrupted.
    """
    try:
        with held():
            report, stored = store_case(report, show.cases, environ)
            with report_limited() if static else nullcontext():
                redacted = redact_private(report, environ) if show.redact else report
                made = render_documents(redacted, show, environ)
            written = write_documents(made) and stored
    except LimitReachedError as reached:
        report = with_left_out(stand_in_report(report.command, ""), "report", str(reached))
        written = write_documents(render_documents(report, show, environ))
    except Exception as error:  # noqa: BLE001 - a report that cannot be shown must still end in one document
        note = f"{whereabouts(error)} while showing the report"
        report = replace(stand_in_report(report.command, ""), internal_error=note)
        written = write_documents(render_documents(report, show, environ))
    else:
        written &= write_extras(report, show.extras, environ, redact=show.redact) and UNWRITTEN not in report.extra
    status = exit_status(report, show.fail_on.value)
    return status if written or report.interrupted or status == INTERNAL_ERROR else CANNOT_EXAMINE


def store_case(report: Report, store: str | None, environ: Mapping[str, str]) -> tuple[Report, bool]:
    """``report`` with what ``store`` knew of its failure; whether it is kept there: what went wrong is a warning."""
    if store is None:
        return report, True
    from aotidoctor.commands.cases.remember import remember

    try:
        return remember(store, report, environ), True
    except AotidoctorError as error:
        warn(f"--cases: {error}")
    except Exception as error:  # noqa: BLE001 - the report stands whatever becomes of the store
        warn(f"--cases: {FAILED_HERE}: {whereabouts(error)}")
    return report, False


def interrupted_report(command: str, path: str) -> Report:
    """Make a report that says that nothing was finished."""
    reason = f"interrupted{f' by {name}' if (name := requested_signal()) else ''} before anything was finished"
    note = NotChecked(code="AD-RUN", name=command, reason=reason)
    return replace(stand_in_report(command, path), interrupted=True, not_checked=(note,))


def with_left_out(report: Report, name: str, reason: str) -> Report:
    """``report`` with what a limit left out."""
    return replace(report, out_of_time=True, not_checked=(NotChecked(code=LIMIT_CODE, name=name, reason=reason),))


def stand_in_report(command: str, path: str) -> Report:
    """Make a report without a result: nothing about the package, the bare minimum about the host."""
    host = Host(
        system=platform.system(),
        machine=platform.machine(),
        python=platform.python_version(),
        unstated=frozenset(item.name for item in fields(Host)) - {"system", "machine", "python"},
    )
    artifact = Artifact(path=path, kind=ArtifactKind.UNREADABLE, size=0, problem="not examined")
    return Report(
        verdict="unknown",
        stage=None,
        case=Case(artifact=artifact, host=host),
        diagnoses=(),
        findings=(),
        not_checked=(),
        runs=(),
        argv=argv(),
        command=command,
        version=__version__,
        started=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=0.0,
    )
