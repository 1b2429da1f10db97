"""``aotidoctor triton``: config.pbtxt against the package, before the server is started."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import execute
from aotidoctor.cli.run import argv
from aotidoctor.cli.show import FailOn, make_show

Repository = Annotated[
    str,
    typer.Argument(metavar="REPOSITORY|MODEL_DIR", help="A model repository, or the folder of one model."),
]
Release = Annotated[
    str | None,
    typer.Option("--triton", metavar="YY.MM", help="Release of the server. [default: the newest known]"),
]


def triton(
    repository: Repository,
    *,
    release: Release = None,
    format_: opt.FormatOption = None,
    json: opt.Json = False,
    report: opt.ReportTo = None,
    output_dir: opt.OutputDir = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = 0,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    redact: opt.Redact = True,
) -> None:
    """Say what Triton Inference Server would make of a config.pbtxt and its package.

    Executes nothing, and needs neither torch nor a server. A folder called like one of the words below is ./names.
    """
    show = make_show(
        format_=format_,
        json=json,
        report=report,
        output_dir=output_dir,
        quiet=quiet,
        verbose=verbose,
        fail_on=fail_on,
        redact=redact,
        protected=(repository, os.path.join(repository, "config.pbtxt")),  # noqa: PTH118 - it need not exist
    )
    from aotidoctor import serve  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "triton", repository, show, lambda _: serve.serve(repository, triton=release, argv=argv(), environ=os.environ)
    )
