"""``aotidoctor plugins``: which are installed, from where, and what is wrong with them."""

from __future__ import annotations

from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.show import write_stdout
from aotidoctor.reports.status import OK, PROBLEM

OnlyList = Annotated[bool, typer.Option("--list", help="Only list plugins; import nothing.")]


def plugins(*, list_: OnlyList = False, json: opt.Json = False) -> None:
    """List and validate the installed plugins.

    Imports each in a separate process. Exit status 1: at least one of them cannot be used.
    """
    from aotidoctor.commands.plugins import listed, text  # noqa: PLC0415 - `--help` does not need it

    found = listed(validate=not list_)
    if json:
        from aotidoctor.reports.json.render import dumps  # noqa: PLC0415 - for this format only

        write_stdout(dumps(found))
    else:
        write_stdout(text(found))
    raise typer.Exit(PROBLEM if any(row["problem"] for row in found["plugins"]) else OK)
