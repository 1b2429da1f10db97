"""``aotidoctor mcp``: a server for coding agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from aotidoctor.cli.show import refusing

RootFolder = Annotated[
    str,
    typer.Option("--root", metavar="DIR", help="Folder that contains all paths."),
]
AllowRun = Annotated[
    bool, typer.Option("--allow-run", help="Also offer the tools that execute native code of packages: run and repro.")
]


def mcp(*, root: RootFolder = ".", allow_run: AllowRun = False) -> None:
    """Serve coding agents through the Model Context Protocol.

    Communicates over standard input and output until the input ends. Executes nothing from a package without
    --allow-run. Answers are redacted, bounded, and name their evidence.
    """
    if not Path(root).is_dir():
        raise typer.BadParameter(f"{root!r} is not a folder", param_hint="--root")
    from aotidoctor.commands.mcp.server import serve  # noqa: PLC0415 - `--help` does not need it

    with refusing():
        serve(root, may_run=allow_run, environ=os.environ)
