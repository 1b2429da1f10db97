"""``aotidoctor analyze``: a bundle or a saved report, judged again."""

from __future__ import annotations

from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import FailOn, IssueForm, make_show

Sent = Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle (.zip), or a JSON report.")]


def analyze(
    sent: Sent,
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
    """Judge a bundle again, without its package, host or GPU.

    Asks every check that needs no execution again, keeps what the runs of then showed, reads the logs in it, and says
    what changed. Executes, unpickles and unpacks nothing.
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
        protected=(sent,),
    )
    from aotidoctor.analysis.analyze import analyze as judge  # noqa: PLC0415 - `--help` does not need the stages

    execute("analyze", sent, show, lambda _: judge(sent, argv=argv()))
