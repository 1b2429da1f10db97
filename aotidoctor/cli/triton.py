"""``aotidoctor triton``: config.pbtxt against the package, before the server is started."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options
from aotidoctor.model.event import OnEvent
from aotidoctor.model.report import Report

Repository = Annotated[
    str,
    typer.Argument(metavar="REPOSITORY|MODEL_DIR", help="A model repository, or the folder of one model."),
]


@shown("repository", "repository/config.pbtxt")
def triton(
    repository: Repository,
    *,
    release: opt.Release = None,
    load_hook: opt.LoadHook = False,
    timeout: opt.Timeout = 60.0,
    show: Show,
) -> None:
    """Show how Triton Inference Server would handle a config.pbtxt and its package.

    Executes nothing without --load-hook, and needs neither torch nor a server. For a folder with the name of a command
    below, write ./names.
    """
    seconds = timeout if load_hook else None
    execute(
        "triton",
        repository,
        show,
        lambda on_event: _work(repository, release, on_event, hook_seconds=seconds),
        static=not load_hook,
    )


def _work(repository: str, release: str | None, on_event: OnEvent, *, hook_seconds: float | None) -> Report:
    """The rules alone, or with a call of the init library that may take ``hook_seconds``."""
    if hook_seconds is None:
        from aotidoctor.commands import triton as serve  # noqa: PLC0415 - `--help` does not need the stages

        return serve.serve(repository, triton=release, argv=argv(), environ=os.environ)
    from aotidoctor.commands import triton_rehearse  # noqa: PLC0415 - likewise

    wish = triton_rehearse.Wish(triton=release, load_hook=True, options=Options(timeout=hook_seconds))
    return triton_rehearse.rehearse(repository, wish, argv=argv(), environ=os.environ, on_event=on_event)
