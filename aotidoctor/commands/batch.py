"""Judge many items, each with its own command, and write one line each to a results folder (``aotidoctor batch``).

``judge_item`` runs in the child processes of a batch (cli/batch_child.py); ``batch`` runs in the parent.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import field, replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from aotidoctor.commands.case_options import option_words
from aotidoctor.files import open_regular
from aotidoctor.fleet.cache import Cache, Settings, host_digest, tool_digest
from aotidoctor.fleet.dask_cluster import Patience
from aotidoctor.fleet.flow import FleetFlow, FleetTally, FlowContext, JudgingEngine
from aotidoctor.fleet.items import FOR_HOSTS, FleetItem, ItemSearch, find_items
from aotidoctor.fleet.pool import Limits, Pool, SameProcess
from aotidoctor.fleet.results import ResultsFolder, read_fleet
from aotidoctor.interruption import held, interruptible
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, UsageError, examining
from aotidoctor.model.fleet import FleetRun, FleetSummary
from aotidoctor.model.record import as_object, record, to_json
from aotidoctor.triage.open_case import host_of
from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.model.report import Report
    from aotidoctor.runner.runner import Runner


Environ = Mapping[str, str]
GetRunner = Callable[[tuple[str, ...]], "Runner"]
"""Gets the warm runner of this process that has imported these modules."""

_SPARE_S = 5.0
_LEAST_BUDGET_S = 2.0


def argv_of(item: FleetItem) -> tuple[str, ...]:
    """The command line that judges this item alone."""
    names = ("package", "inputs", "data", "reference", "setup", "host")
    return ("aotidoctor", item.command, item.path, *option_words({name: getattr(item, name) for name in names}))


def judge_item(item: FleetItem, settings: Settings, environ: Environ, runner: GetRunner) -> Report:
    """The report on ``item`` by its command.

    Raises:
        AotidoctorError: the command does not fit, or there is nothing to examine.
    """
    if item.problem is not None:
        raise CannotExamineError(item.problem)
    options, argv, model = _item_options(item, settings), argv_of(item), settings.model_name
    # Each worker imports only the commands that it runs.
    if item.command in ("check", "run"):
        from aotidoctor.commands.diagnose_package import diagnose, early_modules

        static = item.command == "check"
        warm = None if static else runner(early_modules(options))
        return diagnose(item.path, item.inputs, options, argv=argv, environ=environ, static_only=static, runner=warm)
    if item.command == "compat":
        from aotidoctor.commands.compat import compat

        hosts = [item.host] if item.host is not None else []
        return compat([item.path], hosts, [], model_name=model, argv=argv, environ=environ)
    if item.command == "verify":
        from aotidoctor.commands.diagnose_package import REFERENCE_MODULES
        from aotidoctor.commands.verify import VerifyRequest, verify

        question = VerifyRequest(program=item.path, options=options)
        return verify(question, argv=argv, environ=environ, runner=runner(REFERENCE_MODULES))
    if item.command == "triton":
        from aotidoctor.commands.triton import judge_repository

        return judge_repository(item.path, triton=settings.triton, argv=argv, environ=environ)
    if item.command == "analyze":
        from aotidoctor.commands.analyze.analyze import analyze

        return analyze(item.path, argv=argv)
    if item.command == "classify":
        return _classify(item, options, argv, environ)
    raise UsageError(f"{item.command!r} is not a command for many items")


def _item_options(item: FleetItem, settings: Settings) -> Options:
    return Options(
        model_name=settings.model_name,
        device=settings.device,
        setup=item.setup,
        data=(item.data,) if item.data is not None else (),
        reference=item.reference,
        host=item.host,
        generate=settings.generate and item.inputs is None,
        timeout=settings.timeout,
        # A run that ends by its own budget has a report; one that is killed has none.
        budget=max(_LEAST_BUDGET_S, settings.item_timeout - _SPARE_S),
        repeat=settings.repeat,
        trust_pickle=settings.trust_pickle,
        memory_limit=settings.memory_limit if item.command in ("run", "verify") else None,
    )


def _classify(item: FleetItem, options: Options, argv: tuple[str, ...], environ: Environ) -> Report:
    from aotidoctor.commands.classify import classify

    with examining(item.path):
        stream = open_regular(item.path)
    with stream:
        return classify(
            stream,
            item.path,
            package=item.package,
            inputs=item.inputs if item.package is not None else None,
            options=options,
            argv=argv,
            environ=environ,
        )


# The whole batch: digest of the host, cache, workers, results folder.
MOST_WORKERS = 1024
# Default limit of a judging process in bytes: reading takes a tenth of it.
MEMORY = 4 << 30
OnProgress = Callable[[FleetTally], None]
OnWarning = Callable[[str], None]


@record
class BatchRequest:
    """Options of a batch. ``words`` are the arguments, ``cache`` is the file of the cache (None: none).

    ``hosts`` are profiles to judge for. ``jobs`` is the number of processes. ``scheduler`` and ``cluster`` select
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
    demands_cache: bool = False
    scheduler: str | None = None
    cluster: str | None = None
    worker_timeout: float = Patience().workers


def batch(
    request: BatchRequest,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    redact: Callable[[str], str],
    on_progress: OnProgress = lambda _tally: None,
    on_warning: OnWarning = lambda _line: None,
) -> FleetSummary:
    """Judge every item, except those with a line in the folder or an answer in the cache.

    Raises:
        UsageError: the items, the folder or the options are wrong.
        CannotExamineError: the results cannot be written, or no worker can judge.
    """
    if request.hosts and request.command not in FOR_HOSTS:
        names = " and ".join(sorted(FOR_HOSTS))
        raise UsageError(f"--host is for {names}; {request.command} examines on this machine")
    for host in request.hosts:
        # Raises UsageError for a profile that does not exist.
        host_of(Options(host=host), None, environ)
    if request.scheduler is not None and request.cluster is not None:
        raise UsageError("--scheduler and --cluster cannot be combined")
    _workers(request.cluster)
    search = ItemSearch(command=request.command, hosts=request.hosts, inputs_pattern=request.inputs_pattern)
    with interruptible():
        fleet = find_items(request.words, search)
    tally = FleetTally(total=len(fleet))
    began = time.monotonic()
    problem, interrupted = None, False
    notes: list[str] = []
    try:
        with held(), ResultsFolder(request.folder) as folder, Cache(request.cache) as cache:
            if cache.problem is not None and request.demands_cache:
                on_warning(cache.problem)
            try:
                run = FleetRun(
                    command=request.command,
                    items=len(fleet),
                    started=_now(),
                    hosts=request.hosts,
                    tool=__version__,
                    digest=tool_digest(),
                    argv=tuple(map(redact, argv)),
                )
                continued = False
                with suppress(CannotExamineError):
                    # The folder may hold results of the same run, which was interrupted.
                    old = read_fleet(request.folder)
                    same = (old.command, old.digest, old.hosts) == (run.command, run.digest, run.hosts)
                    continued = same and not old.finished
                with interruptible(), _engine(request, environ, on_warning) as engine:
                    context = FlowContext(
                        settings=request.settings,
                        folder=folder,
                        cache=cache,
                        engine=engine,
                        host_key=partial(_host_key, environ=environ, engine=engine),
                        redact=redact,
                        on_progress=on_progress,
                        keep_lost=continued,
                    )
                    folder.write_run(run)
                    FleetFlow(context, tally).run(fleet)
                folder.put_in_order([item.id for item in fleet])
                folder.write_run(replace(run, finished=_now()))
            except KeyboardInterrupt:
                interrupted, problem = True, "interrupted; run the same command again to continue"
            if cache.problem is not None and request.demands_cache:
                problem = problem or cache.problem
            elif cache.problem is not None:
                notes.append(cache.problem)
    except OSError as error:
        raise CannotExamineError(f"{error.filename or request.folder}: {error.strerror or error}") from error
    return FleetSummary(
        folder=request.folder,
        command=request.command,
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


def _engine(
    request: BatchRequest, environ: Mapping[str, str], on_warning: OnWarning
) -> AbstractContextManager[JudgingEngine]:
    settings = request.settings
    limits = Limits(seconds=settings.item_timeout, memory=settings.memory_limit or MEMORY)
    if request.scheduler is not None or request.cluster is not None:
        from aotidoctor.fleet.dask_cluster import DaskCluster

        return DaskCluster(
            request.scheduler,
            _workers(request.cluster),
            limits,
            as_object(to_json(settings)),
            patience=Patience(workers=request.worker_timeout, look=min(Patience().look, request.worker_timeout / 4)),
            on_warning=on_warning,
        )
    if not sys.platform.startswith("linux"):
        return SameProcess(as_object(to_json(settings)))
    return Pool(request.jobs, limits, environ, as_object(to_json(settings)))


def _workers(cluster: str | None) -> int:
    """N of ``local:N``. Raises UsageError."""
    kind, _, number = (cluster or "local:1").partition(":")
    if kind != "local" or not number.isascii() or not number.isdecimal() or not 1 <= int(number) <= MOST_WORKERS:
        raise UsageError(f"--cluster: observed {cluster!r}, expected local:N with N from 1 to {MOST_WORKERS}")
    return int(number)


def _host_key(name: str | None, *, environ: Mapping[str, str], engine: JudgingEngine) -> str:
    """The digest of the host to judge for. Raises UsageError and CannotExamineError."""
    remote = getattr(engine, "host_key", None)
    if name is None and remote is not None:
        return str(remote())
    return host_digest(host_of(Options(host=name), None, environ))


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
