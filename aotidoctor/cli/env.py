"""``aotidoctor env``: what this host offers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show, say, warn
from aotidoctor.cli.shown import shown
from aotidoctor.reports.redact import redacted
from aotidoctor.reports.write import write_file

if TYPE_CHECKING:
    from aotidoctor.model.report import Report

Save = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Also write a profile of this host, for --host elsewhere.")
]


@shown("host")
def env(*, host: opt.Host = None, save: Save = None, show: Show) -> None:
    """Show the properties of this host, and when settings take effect.

    Does not import torch: builds, GPUs, libraries and limits are read from files. With --host, shows the profile of a
    different machine.
    """
    if host is not None and save is not None:
        raise typer.BadParameter("--save and --host cannot be combined", param_hint="--save")
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    def work() -> Report:
        if save is not None:
            _save(save, redact=show.redact)
        return diagnose.env(argv=argv(), environ=os.environ, profile=host)

    execute("env", "", show, lambda _: work(), static=True)


def _save(path: str, *, redact: bool) -> None:
    from aotidoctor.readers.host import read_host  # noqa: PLC0415 - for --save only
    from aotidoctor.readers.host.profiles import profile_document  # noqa: PLC0415 - likewise
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415 - likewise

    host = read_host(artifact=None, environ=os.environ, survey=True)
    shown = redacted(host, os.environ) if redact else host
    try:
        write_file(Path(path), dumps(profile_document(shown, Path(path).stem)))
    except OSError as error:
        warn(f"could not write {path}: {error.strerror or error}")
        return
    say(f"aotidoctor: profile written to {path}\n")
