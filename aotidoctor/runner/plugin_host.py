"""The process that imports plugins: one question at a time, with a limit of time and size for each answer."""

from __future__ import annotations

import json
import os
import pickle
import selectors
import struct
import subprocess
import time
from contextlib import suppress

from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.runner.own import own_command

LARGEST = 4 << 20
"""Bytes of an answer."""


class PluginError(Exception):
    """A plugin did not answer: it raised, was too slow, said too much or took the process down with it."""


class PluginHost:
    """Started with the first question; a context manager. After a failure the next question gets a fresh process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PluginHost:  # noqa: PYI034 - typing.Self is of Python 3.11
        """Nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def ask(self, question: dict[str, object], seconds: float) -> JsonValue:
        """The answer to a question, which must be made of what pickle can send. Raises PluginError."""
        data = pickle.dumps(question)
        process = self._started()
        deadline = time.monotonic() + seconds
        try:
            self._write(process, struct.pack("<I", len(data)) + data, deadline, seconds)
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
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, 9)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                own_command((), "aotidoctor.plugins.child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
            )
            assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
            os.set_blocking(self._process.stdin.fileno(), False)
        return self._process

    def _write(self, process: subprocess.Popen[bytes], data: bytes, deadline: float, seconds: float) -> None:
        """A question that is larger than a pipe waits for somebody to read it."""
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        view = memoryview(data)
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdin, selectors.EVENT_WRITE)
            while view:
                left = deadline - time.monotonic()
                if left <= 0 or not ready.select(left):
                    raise PluginError(f"no answer within {seconds:g} s")
                view = view[os.write(process.stdin.fileno(), view) :]

    def _answer(self, process: subprocess.Popen[bytes], deadline: float, seconds: float) -> JsonObject:
        size = struct.unpack("<I", self._read(process, 4, deadline, seconds))[0]
        if size > LARGEST:
            raise PluginError(f"its answer has {size:,} bytes, expected at most {LARGEST:,}")
        found = json.loads(self._read(process, size, deadline, seconds))
        if not isinstance(found, dict):
            raise PluginError("it sent an unexpected message")
        return found

    def _read(self, process: subprocess.Popen[bytes], size: int, deadline: float, seconds: float) -> bytes:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        data = b""
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            while len(data) < size:
                left = deadline - time.monotonic()
                if left <= 0 or not ready.select(left):
                    raise PluginError(f"no answer within {seconds:g} s")
                part = os.read(process.stdout.fileno(), size - len(data))
                if not part:
                    raise PluginError(_death(process))
                data += part
        return data


def _death(process: subprocess.Popen[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        status = process.wait(5)
        return f"it ended its process: {'signal' if status < 0 else 'exit status'} {abs(status)}"
    return "it closed its process's streams"
