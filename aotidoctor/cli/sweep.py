"""``aotidoctor sweep``: what a package does at the boundary of its contract."""

from __future__ import annotations

import enum
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.answer import answering, document
from aotidoctor.cli.asked import asked
from aotidoctor.cli.show import FailOn, chosen_format, warn, write_stdout
from aotidoctor.model.case import Options
from aotidoctor.reports.text import one_line
from aotidoctor.reports.write import write_file

if TYPE_CHECKING:
    from aotidoctor.model.sweep import Sweep, SweepRow

_BUDGET, _TIMEOUT = 300.0, 30.0


class SweepFormat(str, enum.Enum):
    """Formats of a sweep."""

    RICH = "rich"
    MD = "md"
    JSON = "json"
    HTML = "html"


FormatOption = Annotated[SweepFormat | None, typer.Option("--format", help="Format of stdout. [default: rich]")]
ReportTo = Annotated[
    list[str] | None,
    typer.Option("--report", metavar="FMT:PATH", help="Also write json, md or html to a file; repeatable."),
]
Budget = Annotated[float, typer.Option(parser=opt.duration, metavar="TIME", help="Time limit of the whole command.")]
Calls = Annotated[int | None, typer.Option("--calls", min=1, metavar="N", help="Make at most N calls. [default: all]")]
Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, help="Also show the calls on which all agree.")]


@asked("timeout setup custom_op_library model_name seed memory_limit", timeout=_TIMEOUT)
def sweep(
    package: opt.Package,
    *,
    reference: opt.Reference = None,
    budget: Budget = _BUDGET,
    calls: Calls = None,
    wanted: Options,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    format_: FormatOption = None,
    json: opt.Json = False,
    report: ReportTo = None,
    quiet: opt.Quiet = False,
    verbose: Verbose = 0,
    redact: opt.Redact = True,
) -> None:
    """Try a package at the boundary of its contract.

    Tries sizes at their bounds and beyond, dtypes, strides, ranks, None, keys, indices, and pairs of them, each in a
    child. Shows whether the contract accepts the call, what the package does, and with --reference what the program
    does. Exit status 1: a call that the contract accepts fails or is wrong; with --fail-on warn also: something is
    silently computed wrongly.
    """
    from aotidoctor.commands.sweep.ask import sweep as ask  # noqa: PLC0415 - `--help` does not need it
    from aotidoctor.reports.sweep_view import SCHEMA  # noqa: PLC0415 - likewise

    shown = chosen_format(format_, SweepFormat.RICH, json=json)
    files = [_file(text, package) for text in report or ()]
    options = replace(wanted, reference=reference, budget=budget)
    with answering(SCHEMA if shown is SweepFormat.JSON else None, package):
        found = ask(package, options, environ=os.environ, most=calls, on_row=(lambda *_: None) if quiet else _tell)
    if redact:
        from aotidoctor.reports.redact import redacted  # noqa: PLC0415 - after the work

        found = redacted(found, os.environ)
    _finish(found, shown, files, detail=verbose)
    raise typer.Exit(_status(found, fail_on))


def _finish(found: Sweep, shown: SweepFormat, files: list[tuple[SweepFormat, Path]], *, detail: int) -> None:
    try:
        for kind, path in files:
            write_file(path, _rendered(found, kind, detail))
    except OSError as error:
        warn(f"{error.filename or 'the report'}: {error.strerror or error}")
        raise typer.Exit(2) from error
    write_stdout(_rendered(found, shown, detail))


def _file(text: str, package: str) -> tuple[SweepFormat, Path]:
    kind, colon, path = text.partition(":")
    if not colon or not path or kind not in ("json", "md", "html"):
        raise typer.BadParameter(f"{text!r} is not json:, md: or html:PATH", param_hint="--report")
    if os.path.realpath(path) == os.path.realpath(package):
        raise typer.BadParameter(f"{path} is an input of this command and is not overwritten", param_hint="--report")
    return SweepFormat(kind), Path(path)


def _rendered(found: Sweep, shown: SweepFormat, detail: int) -> str:
    from aotidoctor.reports import sweep_view  # noqa: PLC0415 - after the work

    match shown:
        case SweepFormat.JSON:
            return document(sweep_view.SCHEMA, sweep_view.document(found))
        case SweepFormat.MD:
            return sweep_view.markdown(found)
        case SweepFormat.HTML:
            from aotidoctor.reports.sweep_map import html  # noqa: PLC0415 - for the page only

            return html(found)
        case SweepFormat.RICH:
            return sweep_view.text(found, detail=detail)


def _status(found: Sweep, fail_on: FailOn) -> int:
    from aotidoctor.model.sweep import Judged  # noqa: PLC0415 - after the work

    wanted = {
        FailOn.ERROR: {Judged.FAULT},
        FailOn.WARN: {Judged.FAULT, Judged.UNGUARDED},
        FailOn.INFO: {Judged.FAULT, Judged.UNGUARDED, Judged.REFUSED},
        FailOn.NEVER: set[Judged](),
    }[fail_on]
    return int(any(row.judged in wanted for row in found.rows))


def _tell(row: SweepRow, at: int, of: int) -> None:
    """A line of progress."""
    if sys.stderr is not None:
        told = one_line(
            f"{row.subject}: {row.change or 'nothing changed'}: {row.package.value} ({row.judged.value})", 110
        )
        typer.echo(f"{at}/{of} {told}", err=True)
