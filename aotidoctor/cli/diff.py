"""``aotidoctor diff``: what differs between two reports, bundles, packages or hosts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.answer import document
from aotidoctor.cli.limits import limited
from aotidoctor.cli.show import PageFormat, page_format, warn, write_stdout
from aotidoctor.cli.urls import fetched
from aotidoctor.model.errors import AotidoctorError, LimitReachedError
from aotidoctor.model.fault import whereabouts
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.model.difference import Comparison

_KINDS = "A report (JSON), a bundle, a package, `env --json` of a host, or `here` for this one."
One = Annotated[str, typer.Argument(metavar="A", help=_KINDS)]
Other = Annotated[str, typer.Argument(metavar="B", help="What to compare with A; if one of the two fails, that one.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the verdict.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also list minor differences and unknown facts.")]


@fetched("a", "b")
def diff(
    a: One,
    b: Other,
    *,
    format_: opt.PageFormatOption = None,
    json: opt.Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    redact: opt.Redact = True,
) -> None:
    """Compare two reports, packages or hosts: works there, fails here.

    Differences are ranked by their importance in the playbooks. A package compared with a host shows whether it fits
    there. Executes and unpickles nothing, and needs no torch. Exit status: 0 no difference that matters, 1 differences,
    4 not readable, 6 too much to read.
    """
    shown = page_format(format_, json=json)
    environ = os.environ
    found = _compared(a, b, shown, environ, redact=redact)
    detail = -1 if quiet else int(verbose)
    write_stdout(_rendered(found, shown, detail, environ))
    raise typer.Exit(1 if found.matters else 0)


def _compared(a: str, b: str, shown: PageFormat, environ: Mapping[str, str], *, redact: bool) -> Comparison:
    """The comparison; what cannot be read or breaks ends the process with its status and, as JSON, its document."""
    # `--help` does not need these.
    from aotidoctor.commands.diff.compare import compare_files  # noqa: PLC0415
    from aotidoctor.reports.redact import Redactor  # noqa: PLC0415

    redactor = Redactor.of(environ)
    try:
        with limited():
            found = compare_files(a, b, environ)
            return redactor.value(found) if redact else found
    except LimitReachedError as reached:
        _fail(str(reached), 6, shown)
    except AotidoctorError as error:
        _fail(redactor.text(str(error)) if redact else str(error), error.exit_status, shown)
    except Exception as error:  # noqa: BLE001 - the guard: its own failure ends in one document, too
        _fail(whereabouts(error), 5, shown)
    raise AssertionError  # _fail has raised.


def _fail(message: str, status: int, shown: PageFormat) -> None:
    from aotidoctor.model.difference import DIFFERENCE_SCHEMA  # noqa: PLC0415 - `--help` does not need it

    line = one_line(message, 1000)
    if shown is PageFormat.JSON:
        name = {4: "cannot_examine", 6: "out_of_time"}.get(status, "internal_error")
        write_stdout(document(DIFFERENCE_SCHEMA, {"same": None, name: line}))
    else:
        title = "# Not compared\n\n" if shown is PageFormat.MD else " NOT COMPARED  "
        write_stdout(f"{title}{line}\n")
    warn(line)
    raise typer.Exit(status)


def _rendered(found: Comparison, shown: PageFormat, detail: int, environ: Mapping[str, str]) -> str:
    match shown:
        case PageFormat.JSON:
            from aotidoctor.model.difference import DIFFERENCE_SCHEMA  # noqa: PLC0415 - the chosen format only
            from aotidoctor.reports.json.artifact import picked  # noqa: PLC0415 - likewise

            body = picked(found, "a b differences equal left_out unknown")
            return document(DIFFERENCE_SCHEMA, {"same": not found.matters, **body})
        case PageFormat.MD:
            from aotidoctor.reports.markdown.difference import render  # noqa: PLC0415 - likewise

            return render(found)
        case PageFormat.RICH:
            from aotidoctor.reports.terminal.difference import text  # noqa: PLC0415 - likewise

            return text(found, stream=sys.stdout or StringIO(), environ=environ, detail=detail)
