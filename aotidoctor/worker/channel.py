"""Report to the parent through the side channel: one JSON object per line, appended to a file.

The file is opened anew for each record: code under examination may close every descriptor, or get the number of ours
for a file of its own. Neither must lose a record or write it into the wrong file. Only a process that is confined so
that it opens no file to write to it keeps this one open.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from aotidoctor.model.record import to_json

MAX_RESULT_BYTES = 16 * 1024 * 1024
MAX_TEXT = 256 * 1024
# Windows has the last one alone, and needs it: its text mode would write other bytes.
_APPEND = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class ChannelLostError(Exception):
    """A record could not be written, so the parent cannot learn how the run went (the disk is full, mostly)."""


class Channel:
    """The child's end. ``stage`` is the one entered last; ``user_cwd`` is the base of the user's relative paths.

    ``scratch`` is a directory that outlives the run, for files that a later child reads; the first writer makes it.
    """

    def __init__(self, path: Path, *, user_cwd: Path, run_dir: Path, scratch: Path | None = None) -> None:
        self._path = path
        self.user_cwd = user_cwd
        self.run_dir = run_dir
        self.scratch = scratch or run_dir / "scratch"
        self.stage = "start"
        self._warnings = 0
        self._kept: int | None = None

    def keep_open(self) -> None:
        """Keep the file open from now on: this process will not be allowed to open a file to write to it."""
        self._kept = os.open(self._path, _APPEND)

    def enter(self, stage: str) -> None:
        """Report that ``stage`` begins now, and the one before has ended."""
        self.stage = stage
        self._write({"stage": stage, "t": time.monotonic()})

    def put(self, **values: Any) -> None:
        """Send part of the result now: it survives whatever the code under examination does later."""
        self._write({"put": to_json(values)})

    def warn(self, text: str) -> None:
        """Send a Python warning; only the first fifty are sent."""
        self._warnings += 1
        if self._warnings <= 50:
            self._write({"warning": text[:4096]})

    def error(self, kind: str, message: str, trace: str, *, fatal: bool = False) -> None:
        """Send an exception. ``fatal`` means that the job never began."""
        record = {"type": kind, "message": message[:MAX_TEXT], "traceback": trace[-MAX_TEXT:]}
        self._write({"fatal" if fatal else "error": record})

    def done(self, result: dict[str, Any]) -> None:
        """Send the result and the done-marker."""
        self._write({"put": to_json(result)})
        self._write({"done": True, "t": time.monotonic()})

    def _write(self, record: dict[str, Any]) -> None:
        data = json.dumps(record, separators=(",", ":")).encode()
        if len(data) > MAX_RESULT_BYTES:
            data = json.dumps({"too_large": len(data)}).encode()
        try:
            fd = os.open(self._path, _APPEND) if self._kept is None else self._kept
            try:
                # The leading newline ends a line that another writer may have left unfinished.
                os.write(fd, b"\n" + data + b"\n")
            finally:
                if self._kept is None:
                    os.close(fd)
        except OSError as error:
            raise ChannelLostError(str(error)) from error
