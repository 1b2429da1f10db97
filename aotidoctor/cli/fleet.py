"""``aotidoctor fleet``: what the results of a fleet show together."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv
from aotidoctor.cli.show import chosen_format, refusing, warn, write_report, write_stdout
from aotidoctor.model.errors import AotidoctorError, UsageError
from aotidoctor.model.fault import whereabouts
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.commands.fleet import Wanted
    from aotidoctor.fleet.summary.summarize import Fleet


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
StdoutFormat = Annotated[FleetFormat | None, typer.Option("--format", help="Format of stdout. [default: rich]")]
ReportTo = Annotated[
    list[str] | None,
    typer.Option("--report", metavar="FMT:PATH", help="Also write a file in a format (not rich); repeatable."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show all rows of the tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the verdict.")]
_RESULT_FILES = ("fleet.json", "results.jsonl")


def fleet(
    results: Results,
    *,
    baseline: Baseline = None,
    accepted: Accepted = None,
    fail_on_new: FailOnNew = False,
    on_new: OnNew = None,
    format_: StdoutFormat = None,
    json: opt.Json = False,
    report: ReportTo = None,
    quiet: Quiet = False,
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
    files = [_spec(text, [*results, *([baseline] if baseline else [])], accepted) for text in report or ()]
    from aotidoctor.commands import fleet as command  # noqa: PLC0415 - `--help` does not need pandas

    wanted = command.Wanted(folders=tuple(results), baseline=baseline, accepted=accepted, argv=argv())
    with refusing():
        words = command.hook_words(on_new) if on_new is not None else ()
    found = _judged(wanted, kind, redact=redact)
    try:
        _show(found, kind, files, detail=-1 if quiet else int(verbose))
    except Exception as error:  # noqa: BLE001 - the guard: its own failure ends in a status, too
        _fail(whereabouts(error), 5, FleetFormat.CHAT)
    if words:
        command.call_for_news(found.summary, words, os.environ, warn)
    raise typer.Exit(command.status(found.summary, fail_on_new=fail_on_new))


def _spec(text: str, folders: Sequence[str], accepted: str | None) -> tuple[str, Path]:
    kind, colon, path = text.partition(":")
    known = [one.value for one in FleetFormat if one is not FleetFormat.RICH]
    if not colon or not path or kind not in known:
        raise typer.BadParameter(f"{text!r} is not FMT:PATH; formats: {', '.join(known)}", param_hint="--report")
    taken = {os.path.realpath(os.path.join(folder, name)) for folder in folders for name in _RESULT_FILES}  # noqa: PTH118
    taken |= {os.path.realpath(accepted)} if accepted is not None else set()
    if os.path.realpath(path) in taken:
        raise typer.BadParameter(f"{path} is an input of this command and is not overwritten", param_hint="--report")
    return kind, Path(path)


def _judged(wanted: Wanted, kind: FleetFormat, *, redact: bool) -> Fleet:
    """The summary; what cannot be read or breaks ends the process with its status and, as JSON, its document."""
    from aotidoctor.commands.fleet import judge  # noqa: PLC0415 - `--help` does not need it
    from aotidoctor.reports.redact import Redactor  # noqa: PLC0415 - likewise

    redactor = Redactor.of(os.environ) if redact else None
    try:
        return judge(wanted, redactor)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except AotidoctorError as error:
        _fail(redactor.text(str(error)) if redactor else str(error), error.exit_status, kind)
    except KeyboardInterrupt:
        _fail("interrupted", 130, kind)
    except Exception as error:  # noqa: BLE001 - the guard: its own failure ends in one document, too
        _fail(whereabouts(error), 5, kind)


def _fail(message: str, status: int, kind: FleetFormat) -> NoReturn:
    line = one_line(message, 1000)
    if kind is FleetFormat.JSON:
        from aotidoctor.commands.fleet import failure  # noqa: PLC0415 - likewise

        name = {4: "cannot_examine", 130: "interrupted"}.get(status, "internal_error")
        write_stdout(failure(line, name))
    warn(line)
    raise typer.Exit(status)


def _show(found: Fleet, kind: FleetFormat, files: Sequence[tuple[str, Path]], *, detail: int) -> None:
    from aotidoctor.commands.fleet import rendered  # noqa: PLC0415 - `--help` does not need it

    if kind is FleetFormat.RICH:
        from aotidoctor.reports.fleet.terminal import text  # noqa: PLC0415 - the chosen format only

        write_stdout(text(found.summary, stream=sys.stdout or StringIO(), environ=os.environ, detail=detail))
    else:
        for piece in rendered(found, kind.value):
            write_stdout(piece)
    for name, path in files:
        write_report(path, "".join(rendered(found, name)))
