"""``aotidoctor batch``: the same question for many packages, logs and hosts."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, NoReturn

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli import urls
from aotidoctor.cli.execute import argv
from aotidoctor.cli.show import FailOn, PageFormat, page_format, refusing, warn, write_stdout
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.fleet import FleetSummary
from aotidoctor.model.interruption import status as interruption_status

_CACHE = os.path.join("aotidoctor", "fleet.sqlite")  # noqa: PTH118 - a name
_STATIC_S, _EXECUTING_S = 120.0, 900.0
_INTERRUPTED = 130
# What is worst comes first: a problem, a failure without a cause, what could not be examined, a fault of our own.
_ORDER = (1, 3, 5, 6, 4)


class Command(str, enum.Enum):
    """Commands that judge packages."""

    CHECK = "check"
    RUN = "run"
    COMPAT = "compat"
    CLASSIFY = "classify"
    TRITON = "triton"
    VERIFY = "verify"


Items = Annotated[
    list[str],
    typer.Argument(metavar="ITEM...", help="Packages, logs, bundles, folders, globs, or a manifest (.csv, .jsonl)."),
]
How = Annotated[Command, typer.Option("--command", help="Command that examines each package.")]
Output = Annotated[str, typer.Option("--output-dir", "-o", metavar="DIR", help="Folder for the results.")]
InputsPattern = Annotated[
    str | None,
    typer.Option(metavar="PATTERN", help="Path of the inputs of a package: {dir}/{stem}.inputs.pt."),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host", metavar="PROFILE", help="Examine for this machine: a file of `env --save`, or a name; repeatable."
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Number of processes. [default: one per processor]")]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Use the workers of a Dask scheduler: tcp://host:8786."),
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", metavar="local:N", help="Use N Dask workers on this machine.")
]
WorkerTimeout = Annotated[
    float,
    typer.Option(
        parser=opt.duration,
        metavar="TIME",
        help="Time without any Dask worker after which the cluster is lost. [default: 5m]",
        show_default=False,
    ),
]
ItemTimeout = Annotated[
    float | None,
    typer.Option(parser=opt.duration, metavar="TIME", help="Time limit per item. [default: 2m, 15m if it is executed]"),
]
Memory = Annotated[
    int | None,
    typer.Option(
        parser=opt.size, metavar="SIZE", help="Memory limit of the process that examines an item, such as 4G."
    ),
]
CacheFile = Annotated[
    str | None,
    typer.Option("--cache", metavar="FILE", help="Cache file. [default: in the user's cache folder]"),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write a cache.")]


def batch(
    items: Items,
    *,
    command: How = Command.CHECK,
    output_dir: Output = "results",
    inputs_pattern: InputsPattern = None,
    host: Hosts = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    cluster: ClusterOption = None,
    worker_timeout: WorkerTimeout = 300.0,
    timeout: opt.Timeout = 60.0,
    item_timeout: ItemTimeout = None,
    memory_limit: Memory = None,
    repeat: opt.Repeat = 1,
    generate: opt.Generate = False,
    model_name: opt.ModelName = None,
    device: opt.Device = None,
    release: opt.Release = None,
    trust_pickle: opt.TrustPickle = False,
    cache: CacheFile = None,
    no_cache: NoCache = False,
    cases: opt.Cases = None,
    format_: opt.PageFormatOption = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    redact: opt.Redact = True,
) -> None:
    """Examine many packages, logs and bundles, with one line each in a folder of results.

    Continues where an interrupted run ended, and examines again only what has changed. Executes nothing unless
    --command is run or verify. Exit status: that of the worst item; 0 if all are healthy or as expected.
    """
    shape = page_format(format_, json=json)
    executes = command in (Command.RUN, Command.VERIFY)
    from aotidoctor.commands.batch import Wish  # noqa: PLC0415 - `--help` does not need the stages
    from aotidoctor.fleet.pool import processors  # noqa: PLC0415 - likewise
    from aotidoctor.fleet.settings import Settings  # noqa: PLC0415 - likewise

    settings = Settings(
        fail_on=fail_on.value,
        redact=redact,
        timeout=timeout,
        item_timeout=item_timeout or (_EXECUTING_S if executes else _STATIC_S),
        memory_limit=memory_limit,
        repeat=repeat,
        generate=generate,
        trust_pickle=trust_pickle,
        model_name=model_name,
        device=device,
        triton=release,
    )
    wish = Wish(
        words=tuple(items),
        command=command.value,
        folder=output_dir,
        hosts=tuple(host or ()),
        inputs_pattern=inputs_pattern,
        settings=settings,
        jobs=jobs or processors(),
        scheduler=scheduler,
        cluster=cluster,
        worker_timeout=worker_timeout,
        cache=None if no_cache else cache or _cache_file(os.environ),
    )
    with _at_urls(wish.words, wish.hosts) as (words, profiles):
        _work(replace(wish, words=words, hosts=profiles), shape, quiet=quiet, fail_on=fail_on, cases=cases)


@contextmanager
def _at_urls(words: tuple[str, ...], hosts: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Within: manifests and host profiles of URLs as local paths. Items stay URLs: who judges them fetches them."""
    wanted = {f"{at}": word for at, word in enumerate(words) if word.endswith((".csv", ".jsonl"))}
    given: dict[str, object] = {**wanted, "hosts": hosts}
    with refusing(), urls.localized(given, tuple(given)) as (local, _):
        yield tuple(str(local.get(f"{at}", word)) for at, word in enumerate(words)), tuple(local["hosts"])  # type: ignore[arg-type]


def _work(wish: object, shape: PageFormat, *, quiet: bool, fail_on: FailOn, cases: str | None) -> NoReturn:
    from aotidoctor.cli.batch_progress import BatchProgress  # noqa: PLC0415 - likewise
    from aotidoctor.commands import batch as fleets  # noqa: PLC0415 - likewise
    from aotidoctor.remote.urls import cleaned  # noqa: PLC0415 - likewise
    from aotidoctor.reports.redact import Redactor  # noqa: PLC0415 - likewise

    assert isinstance(wish, fleets.Wish)  # noqa: S101 - its class is not imported for the help
    hide = Redactor.of(os.environ)
    redacts = wish.settings.redact
    progress = BatchProgress(sys.stderr, os.environ, quiet=quiet)

    def on_warning(line: str) -> None:
        # Not behind the line of progress.
        progress.close()
        warn(line)

    try:
        with refusing():
            summary = fleets.batch(
                wish,
                argv=argv(),
                environ=os.environ,
                redact=lambda text: hide.text(cleaned(text)) if redacts else cleaned(text),
                on_progress=progress.show,
                on_warning=on_warning,
            )
    finally:
        progress.close()
    if cases is not None:
        _keep(wish.folder, cases)
    status = exit_status(summary, fail_on)
    write_stdout(_shown(summary, status, shape))
    raise typer.Exit(status)


def _keep(folder: str, cases: str) -> None:
    """Keep the failures in the store of cases; what goes wrong there is a warning."""
    from aotidoctor.commands.cases.remember import remember_results  # noqa: PLC0415 - with --cases only

    try:
        remember_results(cases, folder)
    except CannotExamineError as error:
        warn(f"--cases: {error}")


def exit_status(summary: FleetSummary, fail_on: FailOn) -> int:
    """That of the worst item which is not as expected."""
    if summary.interrupted:
        return interruption_status(_INTERRUPTED)
    if summary.problem is not None:
        return 4
    ignored = {0, 1, 3} if fail_on is FailOn.NEVER else {0}
    return next((status for status in _ORDER if status not in ignored and summary.statuses.get(status)), 0)


def _shown(summary: FleetSummary, status: int, shape: PageFormat) -> str:
    from aotidoctor.reports import fleet_summary  # noqa: PLC0415 - likewise

    match shape:
        case PageFormat.JSON:
            return fleet_summary.render_json(summary, status)
        case PageFormat.MD:
            return fleet_summary.render_markdown(summary)
        case PageFormat.RICH:
            return fleet_summary.render_text(summary)


def _cache_file(environ: Mapping[str, str]) -> str | None:
    """In the user's cache folder; None where there is no home."""
    base = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - no RuntimeError of pathlib's
    return os.path.join(base, _CACHE) if os.path.isabs(base) else None  # noqa: PTH117, PTH118 - likewise
