"""``aotidoctor batch``: many items, each judged by a command, with one line each in a results folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from datetime import datetime, timezone
from functools import partial

from aotidoctor.fleet.cache import Cache
from aotidoctor.fleet.digest import host_digest, tool_digest
from aotidoctor.fleet.find import Search, find_items
from aotidoctor.fleet.flow import Flow
from aotidoctor.fleet.item import FOR_HOSTS, Item
from aotidoctor.fleet.means import Engine, Means
from aotidoctor.fleet.patience import Patience
from aotidoctor.fleet.pool import Limits, Pool
from aotidoctor.fleet.results import ResultsFolder, read_fleet
from aotidoctor.fleet.settings import Settings, settings_json
from aotidoctor.fleet.tally import Tally
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.fleet import FleetRun, FleetSummary
from aotidoctor.model.record import record
from aotidoctor.triage.open_case import host_of
from aotidoctor.version import __version__

MOST_WORKERS = 1024
# Of a process that judges, where nothing else is asked for: reading takes a tenth of it.
MEMORY = 4 << 30
OnProgress = Callable[[Tally], None]
OnWarning = Callable[[str], None]


@record
class Wish:
    """What was asked for. ``words`` are the arguments, ``cache`` the file of the cache (None: none).

    ``hosts`` are profiles to judge for. ``jobs`` is the number of processes. ``scheduler`` and ``cluster`` ask for
    Dask: the address of a scheduler, or ``local:N``; without any worker for ``worker_timeout`` seconds it is lost.
    """

    words: tuple[str, ...]
    command: str = "check"
    folder: str = "results"
    hosts: tuple[str, ...] = ()
    inputs_pattern: str | None = None
    settings: Settings = field(default_factory=Settings)
    jobs: int = 1
    cache: str | None = None
    scheduler: str | None = None
    cluster: str | None = None
    worker_timeout: float = Patience().workers


def batch(
    wish: Wish,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    redact: Callable[[str], str],
    on_progress: OnProgress = lambda _tally: None,
    on_warning: OnWarning = lambda _line: None,
) -> FleetSummary:
    """Judge every item; what has a line in the folder already, or an answer in the cache, is not judged again.

    Raises:
        UsageError: the items, the folder or the options cannot be meant.
        CannotExamineError: the results cannot be written, or nobody can judge.
    """
    _look_at_hosts(wish, environ)
    if wish.scheduler is not None and wish.cluster is not None:
        raise UsageError("--scheduler and --cluster cannot be combined")
    _workers(wish.cluster)
    fleet = find_items(wish.words, Search(command=wish.command, hosts=wish.hosts, inputs_pattern=wish.inputs_pattern))
    tally = Tally(total=len(fleet))
    began = time.monotonic()
    problem, interrupted = None, False
    notes: list[str] = []
    try:
        with ResultsFolder(wish.folder) as folder, Cache(wish.cache) as cache:
            try:
                run = _begin(wish, fleet, tuple(map(redact, argv)))
                with _engine(wish, environ, on_warning) as engine:
                    means = Means(
                        settings=wish.settings,
                        folder=folder,
                        cache=cache,
                        engine=engine,
                        host_key=partial(_host_key, environ=environ, engine=engine),
                        redact=redact,
                        on_progress=on_progress,
                        keep_lost=_goes_on(wish.folder, run),
                    )
                    folder.write_run(run)
                    Flow(means, tally).run(fleet)
                folder.put_in_order([item.id for item in fleet])
                folder.write_run(replace(run, finished=_now()))
            except KeyboardInterrupt:
                interrupted, problem = True, "interrupted; run the same command again to continue"
            notes += [cache.problem] if cache.problem is not None else []
    except OSError as error:
        raise CannotExamineError(f"{error.filename or wish.folder}: {error.strerror or error}") from error
    return FleetSummary(
        folder=wish.folder,
        command=wish.command,
        items=tally.total,
        kept=tally.kept,
        cached=tally.cached,
        judged=tally.judged,
        as_expected=tally.as_expected,
        seconds=time.monotonic() - began,
        verdicts=dict(tally.verdicts.most_common()),
        causes=dict(tally.causes.most_common()),
        statuses=dict(tally.statuses),
        interrupted=interrupted,
        problem=problem,
        notes=tuple(notes),
    )


def _look_at_hosts(wish: Wish, environ: Mapping[str, str]) -> None:
    """A profile of the command line that is not there is an error of the command line."""
    if wish.hosts and wish.command not in FOR_HOSTS:
        raise UsageError(f"--host is for {' and '.join(sorted(FOR_HOSTS))}; {wish.command} examines on this machine")
    for host in wish.hosts:
        host_of(Options(host=host), None, environ)


def _engine(wish: Wish, environ: Mapping[str, str], on_warning: OnWarning) -> AbstractContextManager[Engine]:
    settings = wish.settings
    limits = Limits(seconds=settings.item_timeout, memory=settings.memory_limit or MEMORY)
    if wish.scheduler is not None or wish.cluster is not None:
        from aotidoctor.fleet.cluster import Cluster  # noqa: PLC0415 - for those who ask for it

        return Cluster(
            wish.scheduler,
            _workers(wish.cluster),
            limits,
            settings_json(settings),
            patience=Patience(workers=wish.worker_timeout, look=min(Patience().look, wish.worker_timeout / 4)),
            on_warning=on_warning,
        )
    return Pool(wish.jobs, limits, environ, settings_json(settings))


def _workers(cluster: str | None) -> int:
    """N of ``local:N``. Raises UsageError."""
    kind, _, number = (cluster or "local:1").partition(":")
    if kind != "local" or not number.isascii() or not number.isdecimal() or not 1 <= int(number) <= MOST_WORKERS:
        raise UsageError(f"--cluster: observed {cluster!r}, expected local:N with N from 1 to {MOST_WORKERS}")
    return int(number)


def _begin(wish: Wish, fleet: Sequence[Item], argv: tuple[str, ...]) -> FleetRun:
    return FleetRun(
        command=wish.command,
        items=len(fleet),
        started=_now(),
        hosts=wish.hosts,
        tool=__version__,
        digest=tool_digest(),
        argv=argv,
    )


def _goes_on(folder: str, run: FleetRun) -> bool:
    """Whether the folder holds a part of this very run, which was interrupted."""
    try:
        before = read_fleet(folder)
    except CannotExamineError:
        return False
    return not before.finished and (before.command, before.digest, before.hosts) == (run.command, run.digest, run.hosts)


def _host_key(name: str | None, *, environ: Mapping[str, str], engine: Engine) -> str:
    """The digest of the host that is judged for. Raises UsageError and CannotExamineError."""
    there = getattr(engine, "host_key", None)
    if name is None and there is not None:
        return str(there())
    return host_digest(host_of(Options(host=name), None, environ))


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
