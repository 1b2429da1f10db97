"""``aotidoctor compare``: the package against what it was made from, output by output."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options

Package = Annotated[str | None, typer.Argument(metavar="[PACKAGE]", help="The .pt2 file; not with --from.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="REPORT", help="Evaluate a saved JSON report again without running anything."),
]


@shown("package", "inputs", "reference", "setup", "from_", "custom_op_library")
@asked(
    "reference rtol atol generate model_name device setup custom_op_library trust_pickle seed timeout budget "
    "threads memory_limit emulate"
)
def compare(
    package: Package = None,
    inputs: opt.Inputs = None,
    *,
    from_: From = None,
    wanted: Options,
    show: Show,
) -> None:
    """Compare outputs, weights and side effects with the reference.

    Outputs that differ are compared with a float64 run of the reference: a difference that rounding explains is not a
    problem (exit status 0; a warning beyond --rtol/--atol). A JSON report contains enough to judge again with --from
    and different tolerances: exactly for an rtol of 0 or a power of ten from 1e-8 to 1, conservatively in between.
    """
    opt.one_source(inputs, generate=wanted.generate)
    wanted = replace(wanted, measure=True)
    _one_question(package, from_, wanted.reference, has_inputs=inputs is not None or wanted.generate)
    # `--help` does not need the stages.
    if from_ is not None:
        from aotidoctor.commands import compare_saved  # noqa: PLC0415

        execute("compare", from_, show, lambda _: compare_saved.judge_report(from_, wanted, argv=argv()))
    from aotidoctor.commands import diagnose  # noqa: PLC0415

    execute(
        "compare",
        package or "",
        show,
        lambda on_event: diagnose.diagnose(
            package or "", inputs, wanted, command="compare", argv=argv(), environ=os.environ, on_event=on_event
        ),
    )


def _one_question(package: str | None, saved: str | None, reference: str | None, *, has_inputs: bool) -> None:
    """Either a package with inputs and reference, or a saved report."""
    if saved is not None:
        if package is not None or reference is not None or has_inputs:
            raise typer.BadParameter("it takes only a saved report and runs nothing", param_hint="--from")
        return
    if package is None:
        raise typer.BadParameter("missing; or --from REPORT", param_hint="PACKAGE")
    if reference is None:
        raise typer.BadParameter("missing: what to compare with", param_hint="--reference")
    if not has_inputs:
        raise typer.BadParameter("missing: --inputs or --generate", param_hint="--inputs")
