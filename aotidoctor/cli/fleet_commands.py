"""``aotidoctor batch`` and ``fleet``: judge many packages, logs and hosts, and show what they have in common."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli import url_arguments
from aotidoctor.cli.document_output import (
    FailOn,
    PageFormat,
    chosen_format,
    exit_on_error,
    exit_with_error,
    page_format,
    warn,
    write_report,
    write_stdout,
)
from aotidoctor.cli.execute import argv
from aotidoctor.interruption import held, signal_status
from aotidoctor.model.errors import (
    CANNOT_EXAMINE,
    INTERNAL_ERROR,
    OK,
    OUT_OF_TIME,
    PROBLEM,
    UNKNOWN,
    CannotExamineError,
)
from aotidoctor.model.fleet import FleetSummary
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.commands.fleet import FleetSummaryRequest
    from aotidoctor.fleet.summary.summarize import FleetOverview


_STATIC_S, _EXECUTING_S = 120.0, 900.0
# What is worst comes first: a problem, a failure without a cause, what could not be examined, a fault of our own.
_ORDER = (PROBLEM, UNKNOWN, INTERNAL_ERROR, OUT_OF_TIME, CANNOT_EXAMINE)


class BatchCommand(str, enum.Enum):
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
CommandOption = Annotated[BatchCommand, typer.Option("--command", help="Command that examines each package.")]
Output = Annotated[str, opt.output("DIR", "Folder for the results.")]
InputsPattern = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Path of the inputs of a package: {dir}/{stem}.inputs.pt.")
]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="PROFILE",
        help="Examine for this machine: a file of `env --save`, or a name; repeatable.",
        autocompletion=opt.offer(opt.known_hosts),
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Number of processes. [default: one per processor]")]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Use the workers of a Dask scheduler: tcp://host:8786.")
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
    str | None, typer.Option("--cache", metavar="FILE", help="Cache file. [default: in the user's cache folder]")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write a cache.")]


def batch(
    items: Items,
    *,
    command: CommandOption = BatchCommand.CHECK,
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
    executes = command in (BatchCommand.RUN, BatchCommand.VERIFY)
    from aotidoctor.commands.batch import BatchRequest
    from aotidoctor.fleet.cache import Settings
    from aotidoctor.fleet.pool import processors

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
    request = BatchRequest(
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
        demands_cache=cache is not None,
    )
    with _fetch_manifests(request.words, request.hosts) as (words, profiles), held():
        _work(replace(request, words=words, hosts=profiles), shape, quiet=quiet, fail_on=fail_on, cases=cases)


@contextmanager
def _fetch_manifests(
    words: tuple[str, ...], hosts: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Within: manifests and host profiles of URLs as local paths. Items stay URLs: who judges them fetches them."""
    wanted = {f"{at}": word for at, word in enumerate(words) if word.endswith((".csv", ".jsonl"))}
    given: dict[str, object] = {**wanted, "hosts": hosts}
    with exit_on_error(), url_arguments.fetch_arguments(given, tuple(given)) as (local, _):
        yield tuple(str(local.get(f"{at}", word)) for at, word in enumerate(words)), tuple(local["hosts"])  # type: ignore[arg-type]


def _work(request: object, shape: PageFormat, *, quiet: bool, fail_on: FailOn, cases: str | None) -> NoReturn:
    from aotidoctor.cli.batch_progress import BatchProgress
    from aotidoctor.commands import batch as fleets
    from aotidoctor.remote.remote_files import clean_text
    from aotidoctor.reports.redact.redactor import Redactor

    assert isinstance(request, fleets.BatchRequest)  # noqa: S101 - its class is not imported for the help
    hide = Redactor.of(os.environ)
    redacts = request.settings.redact
    progress = BatchProgress(sys.stderr, os.environ, quiet=quiet)

    def on_warning(line: str) -> None:
        # Not behind the line of progress.
        progress.close()
        warn(line)

    try:
        with exit_on_error():
            summary = fleets.batch(
                request,
                argv=argv(),
                environ=os.environ,
                redact=lambda text: hide.text(clean_text(text)) if redacts else clean_text(text),
                on_progress=progress.show,
                on_warning=on_warning,
            )
    finally:
        progress.close()
    if cases is not None:
        from aotidoctor.commands.cases.remember import remember_results

        try:
            remember_results(cases, request.folder)
        except CannotExamineError as error:
            warn(f"--cases: {error}")
            summary = replace(summary, problem=summary.problem or f"--cases: {error}")
    status = exit_status(summary, fail_on)
    from aotidoctor.reports.fleet import fleet_files

    if shape is PageFormat.JSON:
        write_stdout(fleet_files.render_batch_json(summary, status))
    elif shape is PageFormat.MD:
        write_stdout(fleet_files.render_batch_markdown(summary))
    else:
        write_stdout(fleet_files.render_batch_text(summary))
    raise typer.Exit(status)


def exit_status(summary: FleetSummary, fail_on: FailOn) -> int:
    """The exit status of the worst item that is not as expected."""
    if summary.interrupted:
        return signal_status()
    if summary.problem is not None:
        return CANNOT_EXAMINE
    ignored = {OK, PROBLEM, UNKNOWN} if fail_on is FailOn.NEVER else {OK}
    return next((status for status in _ORDER if status not in ignored and summary.statuses.get(status)), OK)


def _cache_file(environ: Mapping[str, str]) -> str | None:
    """In the user's cache folder; None where there is no home."""
    base = environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - no RuntimeError of pathlib's
    return f"{base}/aotidoctor/fleet.sqlite" if base.startswith("/") else None


class FleetFormat(str, enum.Enum):
    """Formats of stdout."""

    RICH = "rich"
    MD = "md"
    JSON = "json"
    CSV = "csv"
    HTML = "html"
    SARIF = "sarif"
    JUNIT = "junit"
    CHAT = "chat"


Results = Annotated[list[str], typer.Argument(metavar="RESULTS...", help="Folders written by `aotidoctor batch`.")]
Baseline = Annotated[
    str | None, typer.Option("--baseline", metavar="DIR", help="Older results to compare with: shows what is new.")
]
Accepted = Annotated[
    str | None,
    typer.Option("--accepted", metavar="FILE", help="TOML list of known failures with reasons and end dates."),
]
FailOnNew = Annotated[bool, typer.Option("--fail-on-new", help="Exit status 1 if something is new, else 0.")]
OnNew = Annotated[
    str | None,
    typer.Option("--on-new", metavar="CMD", help="Command to run for each new cluster, given as JSON on stdin."),
]
ReportTo = Annotated[list[str] | None, opt.report_to("Also write a file in a format (not rich); repeatable.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show all rows of the tables.", rich_help_panel=opt.OUTPUT)
]
_RESULT_FILES = ("fleet.json", "results.jsonl")
_FILE_FORMATS = tuple(one.value for one in FleetFormat if one is not FleetFormat.RICH)


def fleet(
    results: Results,
    *,
    baseline: Baseline = None,
    accepted: Accepted = None,
    fail_on_new: FailOnNew = False,
    on_new: OnNew = None,
    format_: Annotated[FleetFormat | None, opt.FORMAT] = None,
    json: opt.Json = False,
    report: ReportTo = None,
    quiet: opt.OnlyVerdict = False,
    verbose: Verbose = False,
    redact: opt.Redact = True,
) -> None:
    """Group a fleet's results by failure; show what is new.

    Shows clusters by signature with their distinguishing features, causes over time, hosts against causes, and the
    slowest items. Needs pandas, but not torch. Exit status 0 regardless of the findings; with --fail-on-new 1 if
    something is new, and 4 if items that were examined before were not examined now, or results are unfinished or
    damaged.
    """
    if (fail_on_new or on_new is not None) and baseline is None:
        raise typer.BadParameter("--fail-on-new and --on-new need --baseline", param_hint="--baseline")
    kind = chosen_format(format_, FleetFormat.RICH, json=json)
    files = [opt.split_report_spec(text, _FILE_FORMATS) for text in report or ()]
    folders = [*results, *([baseline] if baseline else [])]
    inputs = [accepted, *(f"{folder}/{name}" for folder in folders for name in _RESULT_FILES)]
    opt.refuse_inputs([path for _, path in files], inputs)
    from aotidoctor.commands import fleet as fleet_module

    wanted = fleet_module.FleetSummaryRequest(folders=tuple(results), baseline=baseline, accepted=accepted, argv=argv())
    with exit_on_error():
        words = fleet_module.hook_words(on_new) if on_new is not None else ()
    found = _judge_results(wanted, kind, redact=redact)
    with held():
        written = _show_fleet(found, kind, files, detail=-1 if quiet else int(verbose))
    if words:
        fleet_module.call_for_news(found.summary, words, os.environ, warn)
    status = fleet_module.fleet_status(found.summary, fail_on_new=fail_on_new)
    raise typer.Exit(status if written else CANNOT_EXAMINE)


def _show_fleet(found: FleetOverview, kind: FleetFormat, files: Sequence[tuple[str, Path]], *, detail: int) -> bool:
    """Print the summary, and write the files; whether all were."""
    from aotidoctor.commands.fleet import render_fleet

    with exit_with_error(lambda _field, _message: None):
        if kind is FleetFormat.RICH:
            from aotidoctor.reports.fleet.fleet_text import fleet_terminal_text

            write_stdout(
                fleet_terminal_text(found.summary, stream=sys.stdout or StringIO(), environ=os.environ, detail=detail)
            )
        else:
            for piece in render_fleet(found, kind.value):
                write_stdout(piece)
        written = [write_report(path, "".join(render_fleet(found, name))) for name, path in files]
        return all(written)
    raise AssertionError  # An error has ended the process.


def _judge_results(wanted: FleetSummaryRequest, kind: FleetFormat, *, redact: bool) -> FleetOverview:
    """The summary; what cannot be read or breaks ends the process with its status and, as JSON, its document."""
    from aotidoctor.commands.fleet import summarize_results
    from aotidoctor.reports.redact.redactor import Redactor

    redactor = Redactor.of(os.environ) if redact else None

    def write_error(field: str, message: str) -> None:
        if kind is FleetFormat.JSON:
            from aotidoctor.commands.fleet import failure_document

            write_stdout(failure_document(one_line(message, 1000), field))

    try:
        with exit_with_error(write_error, redactor.text if redactor else str):
            return summarize_results(wanted, redactor)
    except KeyboardInterrupt:
        write_error("interrupted", "interrupted")
        warn("interrupted")
        raise typer.Exit(130) from None
