"""Run aotidoctor's own commands in processes of their own, and host plugins in one.

``python -m`` puts the working folder first among the places that Python imports from, and what lies beside a
stranger's package could then be imported: commands are started without it.

A command runs to its end (``run_each``) or within limits of time and output, and can be stopped from outside
(``Command``). The plugin host imports plugins and answers one question at a time, with a limit of time and size for
each answer.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from aotidoctor.model.record import JsonObject, JsonValue, record
from aotidoctor.readers.host.environment import import_path

if TYPE_CHECKING:
    from typing_extensions import Self

_CODE = (
    "import sys; n = 2 + int(sys.argv[1]); sys.path[:] = sys.argv[2:n]; sys.argv[:] = ['aotidoctor', *sys.argv[n:]]; "
    "from {module} import main; main()"
)
_CONFINED = "aotidoctor.confined"


def own_command(words: Sequence[str], module: str = "aotidoctor.__main__") -> list[str]:
    """The command ``aotidoctor words`` in a new interpreter that imports from where this one does."""
    paths = import_path()
    return [sys.executable, "-I", "-c", _CODE.format(module=module), str(len(paths)), *paths, *words]


@record
class ExaminedPath:
    """The result for one path: exit status (128 + signal where one ended it) and output."""

    path: str
    status: int
    output: str


def run_each(words: Sequence[str], path: str) -> ExaminedPath:
    """``aotidoctor words``, to its end; the limits are the command's own."""
    # Files: the end of a pipe would be that of whoever the command leaves behind.
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        done = subprocess.run(own_command(words), check=False, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        stdout.seek(0)
        stderr.seek(0)
        # Progress is on stderr; it is shown where there is no other output.
        output = (stdout.read() or stderr.read()).decode("utf-8", "replace")
    return ExaminedPath(path=path, status=status, output=output.rstrip())


# A command with limits that can be stopped from outside. After SIGTERM a command writes the report of what it knows.
_GRACE_S = 10.0
_STDERR = 8_000
# So often it is looked whether the process has ended; and for so long what it wrote before is read.
_LOOK_S, _REST_S = 0.2, 10.0


@record
class CommandResult:
    """The result of a command. ``stdout`` is None where there was more than the limit; ``late``: its time ran out."""

    status: int
    stdout: bytes | None
    stderr: str
    late: bool


class RunningCommand:
    """``aotidoctor words`` in the folder ``cwd``, which reads nothing below it that leads out of it.

    ``run`` is called once, ``stop`` at any time from any thread.
    """

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

    def run(self) -> CommandResult:
        """Run the command to its end. Raises OSError where no process can be started."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
            given.write(self._stdin)
            given.seek(0)
            with self._lock:
                if self._stopped:
                    return CommandResult(status=-signal.SIGTERM, stdout=b"", stderr="", late=False)
                # A group of its own: an interrupt of the terminal is for who started us.
                self._process = subprocess.Popen(
                    own_command(self._words, _CONFINED),
                    cwd=self._cwd,
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
            timer = threading.Timer(self._seconds, self._expire)
            timer.start()
            try:
                stdout = self._read(self._process)
                # Its time runs on: whoever closes its stdout has not ended yet.
                status = self._process.wait(self._seconds + _GRACE_S + _REST_S)
            except subprocess.TimeoutExpired:
                # Nothing can kill it: it hangs in the kernel.
                status = -signal.SIGKILL
            finally:
                timer.cancel()
            length = errors.seek(0, os.SEEK_END)
            errors.seek(max(0, length - _STDERR))
            stderr = errors.read().decode("utf-8", "replace")
        return CommandResult(status=status, stdout=stdout, stderr=stderr, late=self._late)

    def stop(self) -> None:
        """Send SIGTERM to the command, and kill it if it does not end."""
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
        parts: list[bytes] | None = []
        size = 0
        with _pipe(process.stdout) as stream:
            for data in _until_its_end(process.pid, stream.fileno()):
                size += len(data)
                if parts is not None and size <= self._most:
                    parts.append(data)
                elif parts is not None:
                    parts = None
                    self.stop()
        return None if parts is None else b"".join(parts)


def _until_its_end(pid: int, stream: int) -> Iterator[bytes]:
    """Output of the process, until its end even if a process that it left behind holds the stream open."""
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


# The process that imports plugins.
LARGEST_ANSWER = 4 << 20
"""Bytes of an answer."""


class PluginError(Exception):
    """A plugin did not answer: it raised, was too slow, sent too much or took the process down with it."""


class PluginHost:
    """A context manager whose process starts with the first question; after a failure the next one gets a new one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """The host itself; nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def ask(self, question: dict[str, object], seconds: float) -> JsonValue:
        """The answer to a question, which must be made of what pickle can send. Raises PluginError."""
        data = pickle.dumps(question)
        if self._process is None:
            self._process = subprocess.Popen(
                own_command((), "aotidoctor.plugins.child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
            )
            os.set_blocking(_pipe(self._process.stdin).fileno(), False)
        process = self._process
        deadline = time.monotonic() + seconds
        try:
            view, stdin = memoryview(struct.pack("<I", len(data)) + data), _pipe(process.stdin)
            while view:
                # A question that is larger than a pipe waits for somebody to read it.
                _wait_for(stdin, selectors.EVENT_WRITE, deadline, seconds)
                view = view[os.write(stdin.fileno(), view) :]
            answer = self._answer(process, deadline, seconds)
        except BrokenPipeError:
            self.close()
            raise PluginError(_death(process)) from None
        except BaseException:
            self.close()
            raise
        if "error" in answer:
            raise PluginError(str(answer["error"])[:2000])
        return answer.get("value")

    def close(self) -> None:
        """Kill it. May be called twice."""
        process, self._process = self._process, None
        if process is None:
            return
        _signal(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REST_S)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _answer(self, process: subprocess.Popen[bytes], deadline: float, seconds: float) -> JsonObject:
        size = struct.unpack("<I", self._read(process, 4, deadline, seconds))[0]
        if size > LARGEST_ANSWER:
            raise PluginError(f"its answer has {size:,} bytes, expected at most {LARGEST_ANSWER:,}")
        found = json.loads(self._read(process, size, deadline, seconds))
        if not isinstance(found, dict):
            raise PluginError("it sent an unexpected message")
        return found

    def _read(self, process: subprocess.Popen[bytes], size: int, deadline: float, seconds: float) -> bytes:
        data, stdout = b"", _pipe(process.stdout)
        while len(data) < size:
            _wait_for(stdout, selectors.EVENT_READ, deadline, seconds)
            part = os.read(stdout.fileno(), size - len(data))
            if not part:
                raise PluginError(_death(process))
            data += part
        return data


def _wait_for(stream: IO[bytes], event: int, deadline: float, seconds: float) -> None:
    with selectors.DefaultSelector() as ready:
        ready.register(stream, event)
        left = deadline - time.monotonic()
        if left <= 0 or not ready.select(left):
            raise PluginError(f"no answer within {seconds:g} s")


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("the process was started without this pipe")
    return stream


def _death(process: subprocess.Popen[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        status = process.wait(5)
        return f"it ended its process: {'signal' if status < 0 else 'exit status'} {abs(status)}"
    return "it closed its process's streams"
