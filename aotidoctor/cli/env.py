"""``aotidoctor env``: what this host offers."""

from __future__ import annotations

import os

from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown


@shown()
def env(*, show: Show) -> None:
    """Show what this host offers, and when settings act.

    Imports no torch: builds, GPUs, libraries and limits are read from files.
    """
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    execute("env", "", show, lambda _: diagnose.env(argv=argv(), environ=os.environ), static=True)
