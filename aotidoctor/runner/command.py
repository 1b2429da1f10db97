"""A command of aotidoctor in a process of its own, with limits of time and output, that can be stopped from outside."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from aotidoctor.model.record import record
from aotidoctor.runner.own import own_command

# After it was asked to end, a command writes the report of what it knows.
_GRACE_S = 10.0
_STDERR = 8_000
# So often it is looked whether the process has ended; and for so long what it wrote before is read.
_LOOK_S, _REST_S = 0.2, 10.0


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
                # Its time runs on: whoever closes its stdout has not ended yet.
                status = self._process.wait()
            finally:
                timer.cancel()
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
        kept: list[bytes] | None = []
        size = 0
        with process.stdout as stream:
            for data in _until_its_end(process.pid, stream.fileno()):
                size += len(data)
                if kept is not None and size <= self._most:
                    kept.append(data)
                elif kept is not None:
                    kept = None
                    self.stop()
        return None if kept is None else b"".join(kept)


def _until_its_end(pid: int, stream: int) -> Iterator[bytes]:
    """What the process writes. Somebody whom it leaves behind may hold the stream open: that is not waited for."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    last: float | None = None
    while last is None or time.monotonic() < last:
        if last is None and _has_ended(pid):
            last = time.monotonic() + _REST_S
        if poll.poll(0 if last is not None else _LOOK_S * 1000):
            data = os.read(stream, 1 << 20)
            if not data:
                return
            yield data
        elif last is not None:
            return


def _has_ended(pid: int) -> bool:
    """Without waiting for it: until then nobody else gets its number."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _end(process: subprocess.Popen[bytes]) -> None:
    # Its number is its own as long as nobody has waited for it.
    if process.poll() is None:
        _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
