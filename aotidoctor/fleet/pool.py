"""Run a pool of processes on this machine that keep the tool loaded and judge one item after the other.

An item has a limit of time and one of memory; at either, it is killed with what it started. A process that dies costs
its own item only: that is given to a new process once more, since the cause may have been elsewhere (the kernel that
ran out of memory), and then reported. Messages between the processes are a JSON object and perhaps some bytes: a report
that is ready to be written and need not be read on its way.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from aotidoctor.model.fleet import KILLED, OUT_OF_MEMORY, TIMED_OUT
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.record_json import from_json
from aotidoctor.runner.helper_processes import Companion, exit_status_within, start_companion

if TYPE_CHECKING:
    from typing_extensions import Self

# Messages.
_HEAD = struct.Struct("!II")
# A report is cut long before; an answer that claims more is none.
LARGEST_MESSAGE = 256 << 20


class LinkLostError(OSError):
    """The other side is gone, or sent something that is not a message."""


def send_message(link: socket.socket, message: JsonObject, body: bytes = b"") -> None:
    """Send one message. Raises OSError."""
    text = json.dumps(message).encode()
    link.sendall(_HEAD.pack(len(text), len(body)) + text + body)


def receive_message(link: socket.socket) -> tuple[JsonObject, bytes] | None:
    """The next message; None at the end. Raises OSError."""
    head = _exactly(link, _HEAD.size)
    if head is None:
        return None
    sizes: tuple[int, int] = _HEAD.unpack(head)
    if max(sizes) > LARGEST_MESSAGE:
        raise LinkLostError("a message of implausible size")
    text, body = _exactly(link, sizes[0]), _exactly(link, sizes[1])
    if text is None or body is None:
        raise LinkLostError("it ended in the middle of a message")
    try:
        message = json.loads(text)
    except ValueError as error:
        raise LinkLostError("a message that is not JSON") from error
    if not isinstance(message, dict):
        raise LinkLostError("a message that is not a JSON object")
    return message, body


def _exactly(link: socket.socket, size: int) -> bytes | None:
    """``size`` bytes; None where the other side has ended."""
    parts: list[bytes] = []
    while size:
        part = link.recv(min(size, 1 << 20))
        if not part:
            if parts:
                raise LinkLostError("it ended in the middle of a message")
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# The pool.
CHILD = "aotidoctor.cli.batch_child"
# Times that an item is given to a process which dies.
MOST_ATTEMPTS = 2
# A process that has judged so many is replaced by a new one: memory that fragments does not add up.
MOST_ITEMS = 2000
# Importing the tool takes half a second, more on a busy machine.
START_S = 120.0
_LOOK_S = 0.2
_ENDING_S = 1.0


@record
class Limits:
    """Limits of one item: ``seconds``, and ``memory`` in bytes of the process that judges it (None: no limit)."""

    seconds: float
    memory: int | None = None


@record
class PoolJob:
    """A request to a process: ``message`` is its content, ``tag`` identifies it."""

    tag: str
    message: JsonObject
    attempts: int = 0


@record
class PoolAnswer:
    """The result of a job. ``lost`` is an ending of ``model.fleet`` without an answer, ``problem`` its reason."""

    job: PoolJob
    message: JsonObject = field(default_factory=dict)
    body: bytes = b""
    lost: str | None = None
    problem: str = ""
    seconds: float = 0.0
    attempts: int = 1


@dataclass(slots=True)
class _Worker:
    companion: Companion
    ready: bool = False
    job: PoolJob | None = None
    since: float = field(default_factory=time.monotonic)
    judged: int = 0


class Pool:
    """A context manager. ``submit`` while there is ``room``, then ``wait`` for answers."""

    def __init__(
        self, jobs: int, limits: Limits, environ: Mapping[str, str], settings: JsonObject, *, child: str = CHILD
    ) -> None:
        self._child = child
        self._jobs = max(1, jobs)
        self._limits = limits
        self._environ = environ
        self._settings = settings
        self._workers: list[_Worker] = []
        self._waiting: deque[PoolJob] = deque()

    def __enter__(self) -> Self:
        """The pool itself; nothing is started before there is work."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """End them all."""
        for worker in self._workers:
            worker.companion.end()
        self._workers.clear()

    @property
    def pending(self) -> int:
        """Jobs without an answer."""
        return len(self._waiting) + sum(worker.job is not None for worker in self._workers)

    @property
    def room(self) -> int:
        """Jobs that may be submitted now: one more for each process than it is busy with."""
        return 2 * self._jobs - self.pending

    def submit(self, job: PoolJob) -> None:
        """Add a job."""
        self._waiting.append(job)

    def wait(self) -> Iterator[PoolAnswer]:
        """The answers that have come, after at most a moment. Raises OSError where no process can be started."""
        while len(self._workers) < min(self._jobs, self.pending):
            companion = start_companion(self._child, self._environ)
            companion.link.settimeout(START_S)
            self._workers.append(_Worker(companion))
            with suppress(OSError):
                send_message(companion.link, self._settings)
        for worker in self._workers:
            self._give(worker)
        places = {worker.companion.link.fileno(): worker for worker in self._workers}
        poll = select.poll()
        for place in places:
            poll.register(place, select.POLLIN)
        for worker in [places[place] for place, _ in poll.poll(_LOOK_S * 1000)]:
            yield from self._read(worker)
        now = time.monotonic()
        for worker in list(self._workers):
            yield from self._look(worker, now)

    def _give(self, worker: _Worker) -> None:
        if worker.ready and worker.job is None and self._waiting:
            worker.job, worker.since = self._waiting.popleft(), time.monotonic()
            # One that is gone is found out by its link.
            with suppress(OSError):
                send_message(worker.companion.link, worker.job.message)

    def _read(self, worker: _Worker) -> Iterator[PoolAnswer]:
        try:
            got = receive_message(worker.companion.link)
        except OSError:
            got = None
        if got is None:
            yield from self._died(worker)
            return
        if not worker.ready:
            worker.ready = True
            return
        job, worker.job, seconds = worker.job, None, time.monotonic() - worker.since
        worker.judged += 1
        if worker.judged >= MOST_ITEMS:
            self._workers.remove(worker)
            worker.companion.end(wait=_ENDING_S)
        else:
            # At once: whoever takes the answer writes files before the next call.
            self._give(worker)
        if job is not None:
            yield PoolAnswer(job=job, message=got[0], body=got[1], seconds=seconds, attempts=job.attempts + 1)

    def _look(self, worker: _Worker, now: float) -> Iterator[PoolAnswer]:
        """Kill what has reached a limit."""
        if not worker.ready:
            if now - worker.since > START_S:
                self._workers.remove(worker)
                _, stderr = worker.companion.end()
                raise OSError(f"a worker process did not start within {START_S:.0f} s: {stderr[-300:]}")
            return
        if worker.job is None:
            return
        most = self._limits.memory
        if now - worker.since > self._limits.seconds:
            yield self._killed(worker, worker.job, TIMED_OUT, f"killed after {self._limits.seconds:g} s (time limit)")
        elif most is not None and worker.companion.resident() > most:
            yield self._killed(worker, worker.job, OUT_OF_MEMORY, f"killed at {most >> 20} MiB (memory limit)")

    def _killed(self, worker: _Worker, job: PoolJob, lost: str, why: str) -> PoolAnswer:
        seconds = time.monotonic() - worker.since
        self._workers.remove(worker)
        worker.companion.end()
        return PoolAnswer(job=job, lost=lost, problem=why, seconds=seconds, attempts=job.attempts + 1)

    def _died(self, worker: _Worker) -> Iterator[PoolAnswer]:
        job, seconds = worker.job, time.monotonic() - worker.since
        self._workers.remove(worker)
        exit_status_within(worker.companion, _ENDING_S)
        status, stderr = worker.companion.end()
        if job is None:
            if not worker.ready:
                raise OSError(f"a worker process could not start: {stderr.strip()[-300:] or status}")
            return
        attempts = job.attempts + 1
        if attempts < MOST_ATTEMPTS:
            self._waiting.appendleft(PoolJob(tag=job.tag, message=job.message, attempts=attempts))
            return
        name = next((one.name for one in signal.Signals if status is not None and one == -status), None)
        how = f"was killed by {name}" if name is not None else f"ended with status {status}"
        why = f"the process that examined it {how}, {attempts} times"
        yield PoolAnswer(job=job, lost=KILLED, problem=why, seconds=seconds, attempts=attempts)


class SameProcess:
    """Judge in this process, one item after the other: where there is no Linux to watch and kill others.

    A context manager with the interface of ``Pool``. Limits of time and memory are those of the commands themselves.
    """

    def __init__(self, settings: JsonObject) -> None:
        child = import_module(CHILD)
        self._judge = child.Judge(from_json(child.Settings, settings))
        self._waiting: deque[PoolJob] = deque()

    def __enter__(self) -> Self:
        """The pool itself."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Nothing is left to end."""

    @property
    def pending(self) -> int:
        """Jobs without an answer."""
        return len(self._waiting)

    @property
    def room(self) -> int:
        """Jobs that may be submitted now."""
        return 1 - len(self._waiting)

    def submit(self, job: PoolJob) -> None:
        """Add a job."""
        self._waiting.append(job)

    def wait(self) -> Iterator[PoolAnswer]:
        """The answer to the next job."""
        if not self._waiting:
            return
        started, words, job = time.monotonic(), sys.argv, self._waiting.popleft()
        try:
            message, body = self._judge.answer(job.message)
        finally:
            sys.argv = words
        yield PoolAnswer(job=job, message=message, body=body, seconds=time.monotonic() - started)


def processors() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1
