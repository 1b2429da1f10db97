"""``aotidoctor completion``: a script for a shell, made from the commands."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from aotidoctor.cli.show import write_stdout


class Shell(str, enum.Enum):
    """Shells that a script can be made for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print completion of commands and options for a shell.

    The script contains the commands and options of this version, so TAB does not start Python.
    """
    from aotidoctor.cli import completion_scripts as scripts  # noqa: PLC0415 - `--help` does not need all commands
    from aotidoctor.cli.option_table import described  # noqa: PLC0415 - likewise

    make = {Shell.BASH: scripts.bash, Shell.ZSH: scripts.zsh, Shell.FISH: scripts.fish}[shell]
    write_stdout(make(described()))
