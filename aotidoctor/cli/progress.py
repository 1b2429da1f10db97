"""A live plan on stderr: one line per probe with icon, name, seconds and verdict.

While a probe runs, its line counts seconds: a tool that is silent for a minute looks hung. Where there is no terminal,
under CI or on a dumb one, each probe has a line when it starts and one when it ends. ``--quiet`` writes nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TextIO, final

from aotidoctor.model.event import Event, EventKind

_CLEAR = "\r\x1b[2K"
_TICK = 0.25
# A stage that ends faster than this never shows: the lines would only flicker.
_PATIENCE = 0.4


def make_progress(stream: TextIO | None, environ: Mapping[str, str], *, quiet: bool) -> Progress:
    """A progress that writes to ``stream``: live on a terminal, else line by line; or a silent one."""
    live = is_live(stream, environ)
    color = live and "NO_COLOR" not in environ
    return Progress(None if quiet else stream, color=color, unicode=_is_unicode(stream), live=live)


def is_live(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether somebody sees what is written to ``stream`` as it comes: on a terminal that is not dumb, and no CI."""
    if environ.get("CI", "").lower() not in ("", "0", "false") or environ.get("TERM") == "dumb":
        return False
    with contextlib.suppress(ValueError, OSError):
        return stream is not None and stream.isatty()
    return False


def _is_unicode(stream: TextIO | None) -> bool:
    return stream is not None and (stream.encoding or "").lower().replace("-", "") == "utf8"


@final
class Progress:
    """Shows events; a context manager that clears the unfinished line at its end."""

    def __init__(self, stream: TextIO | None, *, color: bool = True, unicode: bool = True, live: bool = True) -> None:
        self._stream = stream
        self._live = live
        self._clear = _CLEAR if live else ""
        self._color = color
        self._unicode = unicode
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
            self._ticker.join()
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
                    self._write(self._clear + self._line(event) + "\n")

    def _line(self, event: Event) -> str:
        name = f"treat: {event.name}" if event.kind is EventKind.TREATMENT else event.name
        return f"  {self._icon(event.ok)} {name:<26} {event.seconds:6.2f} s  {_one_line(event.verdict)}"

    def _icon(self, ok: bool | None) -> str:
        names = {True: ("✓", "ok", "32"), False: ("✗", "x", "31"), None: ("·", "-", "2")}[ok]
        text = names[0] if self._unicode else f"{names[1]:<2}"
        return f"\x1b[{names[2]}m{text}\x1b[0m" if self._color else text

    def _dots(self) -> str:
        return "…" if self._unicode else ".."

    def _tick(self) -> None:
        while not self._stop.wait(_TICK):
            with self._lock:
                waited = time.monotonic() - self._since
                if self._current and waited >= _PATIENCE:
                    self._write(f"{_CLEAR}  {self._dots()} {self._current:<26} {waited:6.1f} s")

    def _write(self, text: str) -> None:
        write(self._stream, text)


def write(stream: TextIO | None, text: str) -> None:
    """Write at once; a terminal that has gone away is none."""
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()


def _one_line(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return shown if len(shown) <= 60 else shown[:59] + "…"
