"""``aotidoctor run``: everything — inspect, check, probe, diagnose, confirm, report."""

from __future__ import annotations

import os
from dataclasses import replace

from aotidoctor.cli import options as opt
from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options


@shown("package", "inputs", "reference", "host", "setup", "custom_op_library", "weights", "cases")
@asked(
    "generate model_name device setup custom_op_library reference host weights rtol atol trust_pickle seed "
    "timeout budget repeat jobs threads memory_limit emulate probes skip_probes shrink"
)
def run(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    wanted: Options,
    plan: opt.Plan = False,
    cases: opt.Cases = None,
    show: Show,
) -> None:
    """Find the cause of a failure, and prove it by removing it.

    Executes native code from PACKAGE, in child processes with time and memory limits.
    """
    opt.one_source(inputs, generate=wanted.generate)
    opt.plan_only(wanted.host, plan=plan)
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    if plan:
        execute("run", package, show, lambda _: diagnose.plan(package, inputs, wanted, argv=argv(), environ=os.environ))
    execute(
        "run",
        package,
        replace(show, cases=cases),
        lambda on_event: diagnose.diagnose(package, inputs, wanted, argv=argv(), environ=os.environ, on_event=on_event),
    )
