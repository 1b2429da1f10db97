"""``aotidoctor compare``: the package against what it was made from, output by output."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import EmulateWhen, Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options

Package = Annotated[str | None, typer.Argument(metavar="[PACKAGE]", help="The .pt2 file; not with --from.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="REPORT", help="Evaluate a saved JSON report again without running anything."),
]


@shown("package", "inputs", "reference", "setup", "from_", "custom_op_library")
def compare(
    package: Package = None,
    inputs: opt.Inputs = None,
    *,
    from_: From = None,
    reference: opt.Reference = None,
    rtol: opt.Rtol = None,
    atol: opt.Atol = None,
    generate: opt.Generate = False,
    model_name: opt.ModelName = None,
    device: opt.Device = None,
    setup: opt.Setup = None,
    custom_op_library: opt.CustomOpLibrary = None,
    trust_pickle: opt.TrustPickle = False,
    seed: opt.Seed = 0,
    timeout: opt.Timeout = 60.0,
    budget: opt.Budget = None,
    threads: opt.Threads = None,
    memory_limit: opt.MemoryLimit = None,
    emulate: opt.Emulate = EmulateWhen.AUTO,
    show: Show,
) -> None:
    """Compare outputs, weights and side effects with the reference.

    Outputs that differ are held against a float64 run of the reference: what rounding explains is no problem (exit 0;
    beyond --rtol/--atol a warning). A JSON report keeps enough to judge again with --from and other tolerances: exact
    for an rtol of 0 or a power of ten from 1e-8 to 1, on the strict side between.
    """
    opt.one_source(inputs, generate=generate)
    wanted = Options(
        model_name=model_name,
        device=device,
        setup=setup,
        custom_op_libraries=tuple(custom_op_library or ()),
        reference=reference,
        tolerances=opt.tolerances(rtol, atol),
        measure=True,
        generate=generate,
        seed=seed,
        timeout=timeout,
        budget=budget,
        threads=threads,
        trust_pickle=trust_pickle,
        memory_limit=memory_limit,
        emulate=emulate.value,
    )
    _one_question(package, from_, reference, has_inputs=inputs is not None or generate)
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
