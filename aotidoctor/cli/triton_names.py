"""``aotidoctor triton names``: what the server calls the tensors of a package."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import FailOn, IssueForm, make_show


def triton_names(
    package: opt.Package,
    *,
    release: opt.Release = None,
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
    """Show what the server calls each input and output of a package.

    Numbers (INPUT__1) count in the order of the sample at export; nothing is sorted. Where the server can serve the
    package with no config at all, the reason is told.
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
    from aotidoctor import package_config  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "triton",
        package,
        show,
        lambda _: package_config.names(package, triton=release, argv=argv(), environ=os.environ),
    )
