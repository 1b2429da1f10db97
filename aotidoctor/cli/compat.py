"""``aotidoctor compat``: on which hosts will a package run?"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown

Packages = Annotated[list[str], typer.Argument(metavar="PACKAGE...", help="The .pt2 files.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="PROFILE", help="A file of `env --save`, a built-in name, or here; repeatable."),
]
Torches = Annotated[
    list[str] | None,
    typer.Option("--torch", metavar="VERSION", help="With this torch (2.15, 2.8.0+cu128) instead; repeatable."),
]


@shown("packages", "host")
def compat(
    packages: Packages,
    *,
    host: Hosts = None,
    torch: Torches = None,
    model_name: opt.ModelName = None,
    show: Show,
) -> None:
    """Show on which hosts packages will run, and why not.

    Executes nothing from PACKAGE, and needs no torch. Exit status 3: undetermined for one of the hosts.
    """
    from aotidoctor.commands.compat import compat as answer  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "compat",
        packages[0],
        show,
        lambda _: answer(packages, host or (), torch or (), model_name=model_name, argv=argv(), environ=os.environ),
    )
