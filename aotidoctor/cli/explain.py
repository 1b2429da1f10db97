"""``aotidoctor explain``: the playbook of a cause, or the manual page of a check or probe."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from aotidoctor.api.plugging import plugins
from aotidoctor.cli import options as opt
from aotidoctor.cli.show import PageFormat, page_format, write_stdout


def explain(
    topic: Annotated[str, typer.Argument(metavar="CAUSE|CODE", help="Such as input-stride, AD-IN-014, input_stride.")],
    *,
    format_: opt.PageFormatOption = None,
    json: opt.Json = False,
) -> None:
    """Explain a cause, a check or a probe."""
    shown = page_format(format_, json=json)
    # `--help` does not need these.
    from aotidoctor.commands import explain as manual  # noqa: PLC0415

    with plugins("explain", wanted=True):
        page = manual.find(topic)
    if page is None:
        near = manual.near(topic)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise typer.BadParameter(f"no page for {topic!r}{hint}", param_hint="CAUSE|CODE")
    match shown:
        case PageFormat.JSON:
            from aotidoctor.reports.json import render as json_  # noqa: PLC0415

            fields = {"kind": page.kind, "name": page.name, "code": page.code, "text": page.text}
            write_stdout(json_.dumps({"schema": "aotidoctor.explain/1", **fields}))
        case PageFormat.MD:
            write_stdout(manual.markdown(page))
        case PageFormat.RICH:
            from aotidoctor.reports.terminal import page as terminal_page  # noqa: PLC0415

            write_stdout(terminal_page.text(manual.markdown(page), stream=sys.stdout, environ=os.environ))
