"""``aotidoctor map``: one call of a package from inside."""

from __future__ import annotations

import enum
import os
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import chosen_format, exit_with_error_document, write_formats
from aotidoctor.cli.options import with_options
from aotidoctor.cli.url_arguments import with_fetched_urls
from aotidoctor.interruption import held
from aotidoctor.model.case import Options
from aotidoctor.model.package_map import MAP_SCHEMA

if TYPE_CHECKING:
    from aotidoctor.model.package_map import PackageMap


class MapFormat(str, enum.Enum):
    """Formats of a map."""

    RICH = "rich"
    JSON = "json"
    HTML = "html"
    TRACE = "trace"
    EXPLORER = "model-explorer"


_OF_FILES = tuple(kind.value for kind in MapFormat if kind is not MapFormat.RICH)
MapReports = Annotated[
    list[str] | None,
    opt.report_to(
        "Also write json, html, trace (for Perfetto) or model-explorer (node data) to a file; repeatable.",
        lambda: _OF_FILES,
    ),
]
MapPage = Annotated[str | None, opt.output("FILE", "Write the page to this file.")]
Everything = Annotated[
    int, typer.Option("--verbose", "-v", count=True, help="Show all calls.", rich_help_panel=opt.OUTPUT)
]


@with_fetched_urls("package", "inputs", "reference")
@with_options(case="timeout budget setup custom_op_library weights model_name threads trust_pickle memory_limit")
def map_(
    package: opt.Package,
    *,
    inputs: opt.Inputs = None,
    reference: opt.Reference = None,
    wanted: Options,
    output: MapPage = None,
    format_: Annotated[MapFormat | None, opt.FORMAT] = None,
    json: opt.Json = False,
    report: MapReports = None,
    verbose: Everything = 0,
    redact: opt.Redact = True,
) -> None:
    """Show one call from inside: calls, source lines, memory, time.

    Without --inputs nothing is executed: sizes have their symbols, and there are no times. With --inputs the package is
    called in a child, again and again, until the spread of the times is known; with --reference each value is compared
    with that of the program's node.
    """
    from aotidoctor.commands.map.draw_map import draw_map

    if wanted.next_weights is not None:
        raise typer.BadParameter("one call has one file of weights", param_hint="--weights")
    chosen = chosen_format(format_, MapFormat.RICH, json=json)
    named = [opt.split_report_spec(text, _OF_FILES) for text in report or ()]
    files = [(MapFormat(kind), path) for kind, path in named]
    if output is not None:
        files.append((MapFormat.HTML, Path(output)))
    opt.refuse_inputs([path for _, path in files], (package, inputs, reference, *opt.case_files(wanted)))
    if inputs is None and any(kind in (MapFormat.TRACE, MapFormat.EXPLORER) for kind, _ in (*files, (chosen, None))):
        raise typer.BadParameter("trace and model-explorer hold times: --inputs is needed", param_hint="--report")
    with held():
        with exit_with_error_document(MAP_SCHEMA if chosen is MapFormat.JSON else None, package, redact=redact):
            found = draw_map(package, inputs, replace(wanted, reference=reference), environ=os.environ)
        if redact:
            from aotidoctor.reports.redact.redactor import redact_private

            found = redact_private(found, os.environ)
        write_formats(lambda kind: _render(found, kind, whole=verbose > 0), chosen, files)


def _render(found: PackageMap, kind: MapFormat, *, whole: bool) -> str:
    from aotidoctor.reports import package_map_files as files

    match kind:
        case MapFormat.JSON:
            return files.map_document(found)
        case MapFormat.TRACE:
            return files.trace_document(found)
        case MapFormat.EXPLORER:
            return files.explorer_document(found)
        case MapFormat.HTML:
            from aotidoctor.reports.html.map_page import render_map_page

            return render_map_page(found)
        case MapFormat.RICH:
            return files.map_text(found, stream=sys.stdout or StringIO(), environ=os.environ, whole=whole)
