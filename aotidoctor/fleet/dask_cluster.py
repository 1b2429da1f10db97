"""Run jobs on many machines through Dask, which has a scheduler, and workers wherever they were started.

Work is sent by reference: paths and URLs that the workers reach, never contents. Each thread of a worker has one
process that judges, as the pool of one machine does, so that an item which kills its process costs itself only, and
not the worker. A task of Dask's is a pack of jobs, since a task costs milliseconds and so does a check; a worker
returns what it has judged after a second, and the rest of the pack is sent again. Dask sends the pack of a lost
worker to another one; where that is lost as well, each job of the pack is sent alone, and is given up where it loses
two workers by itself.
"""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from aotidoctor.fleet.cache import host_digest, tool_digest
from aotidoctor.fleet.pool import Limits, Pool, PoolAnswer, PoolJob
from aotidoctor.model.errors import UsageError
from aotidoctor.model.fleet import KILLED
from aotidoctor.model.record import JsonObject, record
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.runner.run_dir import current_directory

if TYPE_CHECKING:
    from distributed import Client, Future
    from typing_extensions import Self


# Time limits of waiting.
T = TypeVar("T")


@record
class Patience:
    """Seconds. With no worker at all there is a warning after ``tell``, and the cluster is lost after ``workers``.

    A scheduler lists its workers every ``look``. It is lost when it cannot be reached at first within ``connect``,
    or later within ``silence``, or when a question has had no answer for ``answer``: one that is stopped keeps its
    connections and says nothing. ``close`` is what parting may take.
    """

    tell: float = 60.0
    workers: float = 300.0
    look: float = 5.0
    connect: float = 10.0
    silence: float = 15.0
    answer: float = 60.0
    close: float = 60.0


def within(seconds: float, ask: Callable[[], T]) -> T:
    """The result of ``ask``, or its exception. Raises TimeoutError where there is neither in time.

    For calls that know no limit of their own. The thread of one that is late is left to itself, and ends with the
    process.
    """
    answer: futures.Future[T] = futures.Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            answer.set_exception(error)

    threading.Thread(target=run, name="aotidoctor-ask", daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except futures.TimeoutError as error:
        # Of Python 3.10 this is no OSError.
        raise TimeoutError(f"no answer within {seconds:g} s") from error


INSTALL = "pip install 'aotidoctor[fleet]'"
# Workers that a job may lose before it is given up; where the scheduler is ours.
_LOST_WORKERS = 1
# Packs that are under way for each thread of a worker: one is judged, the others are on their way.
_AHEAD = 3
# Jobs of a pack at most; and after so many seconds, or bytes of reports, a worker returns what it has.
_PACK, _PACK_S, _PACK_BYTES = 32, 1.0, 16 << 20
_LOOK_S = 0.2
# While no worker is there, the scheduler is asked so often whether one has come.
_RETURN_S = 1.0

There = Callable[[Sequence[JsonObject], JsonObject, Limits], list[PoolAnswer]]
"""Function on a worker: answers to the first of the messages, to one at least, with settings and limits."""


class ClusterLostError(OSError):
    """Nobody is left to judge: the scheduler is gone, or all workers are. What was judged is on the disk."""


class DaskCluster:
    """A context manager: an engine whose jobs are judged by the workers of a Dask cluster.

    ``address`` is that of a scheduler; without one, ``workers`` processes of this machine are started. ``on_warning``
    is called with a line when no worker is there, once for each time that they all go. ``patience`` may be changed at
    any time.
    """

    def __init__(
        self,
        address: str | None,
        workers: int,
        limits: Limits,
        settings: JsonObject,
        *,
        judge: There | None = None,
        patience: Patience | None = None,
        on_warning: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._judge = judge or judge_there
        self._address = address
        self._workers = workers
        self._limits = limits
        self._settings = settings
        self.patience = patience or Patience()
        self._on_warning = on_warning
        self._stack = ExitStack()
        self._client: Client = None
        self._waiting: list[PoolJob] = []
        self._suspects: list[PoolJob] = []
        self._alone: set[str] = set()
        self._packs: dict[str, tuple[tuple[PoolJob, ...], Future]] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._threads, self._counted = 1, -math.inf
        self._heard = time.monotonic()
        # Since when no worker is there; and whether there was a warning.
        self._deserted: float | None = None
        self._warned = False
        self._others: frozenset[int | None] = frozenset()

    def __enter__(self) -> Self:
        """Connect, or start the workers. Raises UsageError, and OSError where there is no scheduler or no worker."""
        try:
            import dask
            from distributed import Client
        except ImportError as error:
            raise UsageError(f"--scheduler and --cluster need Dask; {INSTALL}") from error
        # Dask's messages about workers and connections that come and go are noise here.
        known = [name for name in logging.root.manager.loggerDict if name.startswith(("distributed", "tornado"))]
        for name in ("distributed", "tornado", *known):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        patience = self.patience
        self._others = frozenset(child.pid for child in _children())
        with ExitStack() as stack:
            # Whatever goes wrong below, it ends within a limit as well.
            stack.callback(self._close)
            where: object = self._address
            if self._address is None:
                self._stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": _LOST_WORKERS}))
                where = self._stack.enter_context(self._started())
            # Its own limit does not hold where somebody listens at the address and says nothing.
            self._client = self._stack.enter_context(
                within(2 * patience.connect, lambda: Client(where, timeout=patience.connect, set_as_default=False))
            )
            if set(self._ask_workers(tool_digest)) != {tool_digest()}:
                raise UsageError("the workers have a different version of aotidoctor from this process")
            stack.pop_all()
        return self

    def _started(self) -> AbstractContextManager[object]:
        """Workers of this machine. Raises ClusterLostError."""
        from distributed import LocalCluster

        def start() -> AbstractContextManager[object]:
            started: AbstractContextManager[object] = LocalCluster(
                n_workers=self._workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
            )
            return started

        try:
            return within(self.patience.workers, start)
        except (RuntimeError, TimeoutError) as error:
            raise ClusterLostError(f"the workers of --cluster could not be started: {error}") from error

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Cancel the jobs under way, and end what was started."""
        self._close()

    def _close(self) -> None:
        with suppress(OSError, RuntimeError):
            # A lost cluster does not answer, and the results are on the disk.
            within(self.patience.close, self._leave)
        if self._address is None:
            # Python waits at its end for those that are left, and one that is stopped would not end.
            for child in _children():
                if child.pid not in self._others:
                    child.kill()

    def _leave(self) -> None:
        for _, future in self._packs.values():
            future.cancel(force=True)
        self._packs.clear()
        self._stack.close()

    def _ask_workers(self, question: Callable[[], str]) -> list[str]:
        """The answers of all workers, of one at least. Raises ClusterLostError."""
        while True:
            while not self._look_at_workers():
                time.sleep(min(_LOOK_S, self.patience.look))
            if answers := self._ask_in_time(lambda: list(self._client.run(question).values())):
                return answers
            # Those that were there have gone meanwhile.
            self._counted = -math.inf

    def _ask_in_time(self, ask: Callable[[], T]) -> T:
        try:
            return within(self.patience.answer, ask)
        except TimeoutError as error:
            raise ClusterLostError(f"{self._name} is lost: {error}") from error

    @property
    def _name(self) -> str:
        return f"the scheduler {self._address or 'of --cluster'}"

    def _look_at_workers(self) -> bool:
        """Count the workers from time to time; whether there are any. Raises ClusterLostError."""
        every = self.patience.look if self._deserted is None else min(self.patience.look, _RETURN_S)
        if time.monotonic() - self._counted > every:
            info = self._ask_in_time(lambda: self._client.scheduler_info(n_workers=-1))
            self._counted = now = time.monotonic()
            # Of a scheduler that cannot be reached this is the last answer.
            if self._client.status == "running":
                workers = info.get("workers", {}).values()
                self._threads = max(1, sum(int(worker.get("nthreads", 1)) for worker in workers))
                self._note(now, deserted=not workers)
        return self._deserted is None

    def _note(self, now: float, *, deserted: bool) -> None:
        if not deserted:
            self._deserted, self._warned = None, False
            return
        self._deserted = now if self._deserted is None else self._deserted
        alone, patience = now - self._deserted, self.patience
        if alone >= patience.workers:
            raise ClusterLostError(f"{self._name} has had no worker for {patience.workers:g} s (--worker-timeout)")
        if alone >= patience.tell and not self._warned:
            self._warned = True
            left = f"the batch ends when there is none for {patience.workers:g} s (--worker-timeout)"
            self._on_warning(f"{self._name} has had no worker for {patience.tell:g} s; {left}")

    def host_key(self) -> str:
        """The digest of the machines that judge, as one text; they need not be alike."""
        return "+".join(sorted(set(self._ask_workers(host_digest_here))))

    @property
    def pending(self) -> int:
        """Jobs without an answer."""
        return len(self._waiting) + len(self._suspects) + sum(len(jobs) for jobs, _ in self._packs.values())

    @property
    def room(self) -> int:
        """Jobs that may be submitted now."""
        return _AHEAD * _PACK * self._threads - self.pending

    def submit(self, job: PoolJob) -> None:
        """Add a job. It is sent with the next ``wait``."""
        self._waiting.append(job)

    def _send(self, jobs: Sequence[PoolJob]) -> None:
        # Paths are relative to where we are, and are to be named as they were given.
        here = current_directory()
        messages = [{**job.message, "cwd": here} for job in jobs]
        future = self._client.submit(self._judge, messages, self._settings, self._limits, pure=False)
        self._packs[future.key] = (tuple(jobs), future)
        future.add_done_callback(lambda done: self._ended.put(done.key))

    def wait(self) -> Iterator[PoolAnswer]:
        """The answers that have come, after at most a moment. Raises ClusterLostError."""
        # Send what waits, in packs; in smaller ones where workers have nothing to do.
        while self._waiting:
            idle = self._threads - len(self._packs)
            size = _PACK if idle <= 0 else min(_PACK, -(-len(self._waiting) // idle))
            self._send(self._waiting[:size])
            del self._waiting[:size]
        if self._suspects and not self._packs:
            self._send([self._suspects.pop()])
        keys = []
        try:
            keys.append(self._ended.get(timeout=_LOOK_S))
            while True:
                keys.append(self._ended.get_nowait())
        except queue.Empty:
            pass
        now = time.monotonic()
        if self._client.status == "running":
            self._heard = now
        elif self._client.status == "closed" or now - self._heard > self.patience.silence:
            raise ClusterLostError(f"{self._name} is lost")
        self._look_at_workers()
        for key in keys:
            if key in self._packs:
                yield from self._answers(*self._packs.pop(key))

    def _answers(self, jobs: tuple[PoolJob, ...], future: Future) -> Iterator[PoolAnswer]:
        if future.status == "cancelled":
            raise ClusterLostError(f"{self._name} is lost")
        try:
            returned: list[PoolAnswer] = future.result(timeout=self.patience.answer)
        except Exception as error:
            if future.status == "cancelled" or (future.status != "error" and self._client.status != "running"):
                # Not the job has failed, but the way to its answer.
                raise ClusterLostError(f"{self._name} is lost") from error
            if len(jobs) > 1 or future.status != "error":
                # One of them did it, and the others are not to suffer for it; or a worker was lost with its answers.
                for job in jobs:
                    self._send([job])
                return
            if _is_lost(error) and jobs[0].tag not in self._alone:
                # Dask counts a lost worker against all its jobs: this one is sent again with no other beside.
                self._alone.add(jobs[0].tag)
                self._suspects.append(jobs[0])
                return
            why = f"the worker was lost with it: {type(error).__name__}" if _is_lost(error) else f"{error}"
            workers = int(getattr(error, "allowed_failures", _LOST_WORKERS)) + 1
            yield PoolAnswer(job=jobs[0], lost=KILLED, problem=why[:300], attempts=workers)
            return
        self._waiting.extend(jobs[len(returned) :])
        for job, answer in zip(jobs, returned, strict=False):
            yield replace(answer, job=job)


def _children() -> list[multiprocessing.process.BaseProcess]:
    """Workers that this process has started."""
    return [child for child in multiprocessing.active_children() if child.name.startswith("Dask")]


def _is_lost(error: Exception) -> bool:
    return type(error).__name__ == "KilledWorker"


_LOCAL = threading.local()


def judge_there(messages: Sequence[JsonObject], settings: JsonObject, limits: Limits) -> list[PoolAnswer]:
    """Answer some jobs, on a worker, by the process of this thread; fewer where they take long."""
    pools: Mapping[str, Pool] | None = getattr(_LOCAL, "pools", None)
    key = repr((settings, limits))
    if pools is None or key not in pools:
        for old in (pools or {}).values():
            old.__exit__(None, None, None)
        pools = _LOCAL.pools = {key: Pool(1, limits, os.environ, settings)}
    pool, began = pools[key], time.monotonic()
    returned: list[PoolAnswer] = []
    for message in messages:
        pool.submit(PoolJob(tag="", message=message))
        while not (answers := list(pool.wait())):
            pass
        returned += answers
        if time.monotonic() - began > _PACK_S or sum(len(one.body) for one in returned) > _PACK_BYTES:
            break
    return returned


def host_digest_here() -> str:
    """The digest of the machine of a worker; called there."""
    return host_digest(read_host(artifact=None, environ=os.environ))
