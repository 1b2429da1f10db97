"""``aotidoctor env``: what this host offers."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import FailOn, IssueForm, make_show


def env(
    *,
    format_: opt.FormatOption = None,
    for_: opt.For = IssueForm.GENERIC,
    json: opt.Json = False,
    report: opt.ReportTo = None,
    output_dir: opt.OutputDir = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = 0,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    redact: opt.Redact = True,
) -> None:
    """Show what this host offers, and when settings act.

    Imports no torch: builds, GPUs, libraries and limits are read from files.
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
        form=for_,
    )
    from aotidoctor import pipeline  # noqa: PLC0415 - `--help` does not need the stages

    execute("env", "", show, lambda _: pipeline.env(argv=argv(), environ=os.environ))
