"""``aotidoctor inspect``: what is in the package, its contract, and what it needs of a host."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import FailOn, IssueForm, make_show
from aotidoctor.model.case import Options


def inspect(
    package: opt.Package,
    *,
    model_name: opt.ModelName = None,
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
    """Show what is in a package, and what it needs.

    Executes nothing from PACKAGE, and needs no torch.
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
        protected=(package,),
    )
    wanted = Options(model_name=model_name)
    from aotidoctor import pipeline  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "inspect",
        package,
        show,
        lambda _: pipeline.inspect(package, wanted, argv=argv(), environ=os.environ),
    )
