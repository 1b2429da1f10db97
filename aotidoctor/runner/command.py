"""A command of aotidoctor in a process of its own, with limits of time and output, that can be stopped from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress

from aotidoctor.model.record import record
from aotidoctor.runner.own import own_command

# After it was asked to end, a command writes the report of what it knows.
_GRACE_S = 10.0
_STDERR = 8_000


@record
class Finished:
    """How it ended. ``stdout`` is None where there was more than the limit; ``late`` where its time ran out."""

    status: int
    stdout: bytes | None
    stderr: str
    late: bool


class Command:
    """``aotidoctor words`` in the folder ``cwd``; ``run`` is called once, ``stop`` at any time from any thread."""

    def __init__(self, words: Sequence[str], *, cwd: str, seconds: float, most: int, stdin: bytes = b"") -> None:
        self._words = words
        self._cwd = cwd
        self._seconds = seconds
        self._most = most
        self._stdin = stdin
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._late = False

    def run(self) -> Finished:
        """To its end. Raises OSError where no process can be started."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(self._stdin)
            given.seek(0)
            with self._lock:
                if self._stopped:
                    return Finished(status=-signal.SIGTERM, stdout=b"", stderr="", late=False)
                # A group of its own: an interrupt of the terminal is for who started us.
                self._process = subprocess.Popen(  # noqa: S603 - ourselves
                    own_command(self._words),
                    cwd=self._cwd,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    start_new_session=True,
                )
            timer = threading.Timer(self._seconds, self._expire)
            timer.start()
            try:
                stdout = self._read(self._process)
            finally:
                timer.cancel()
            status = self._process.wait()
            length = said.seek(0, os.SEEK_END)
            said.seek(max(0, length - _STDERR))
            stderr = said.read().decode("utf-8", "replace")
        return Finished(status=status, stdout=stdout, stderr=stderr, late=self._late)

    def stop(self) -> None:
        """Ask it to end, and end it if it does not."""
        with self._lock:
            self._stopped = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        _signal(process.pid, signal.SIGTERM)
        last = threading.Timer(_GRACE_S, _end, (process,))
        last.daemon = True
        last.start()

    def _expire(self) -> None:
        self._late = True
        self.stop()

    def _read(self, process: subprocess.Popen[bytes]) -> bytes | None:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        with process.stdout as stream:
            data = stream.read(self._most + 1)
            if len(data) <= self._most:
                return data
            self.stop()
            while stream.read(1 << 20):
                pass
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    # Its number is its own as long as nobody has waited for it.
    if process.poll() is None:
        _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
