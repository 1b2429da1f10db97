"""``aotidoctor localize``: where it is - the call, the kernel, the operator, the line."""

from __future__ import annotations

import os
from dataclasses import replace

from aotidoctor.cli import options as opt
from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options


@shown("package", "inputs", "reference", "setup", "custom_op_library")
@asked(
    "model_name device setup custom_op_library reference trust_pickle timeout budget threads memory_limit emulate "
    "emulate_kernel shrink"
)
def localize(
    package: opt.Package,
    inputs: opt.RequiredInputs,
    *,
    wanted: Options,
    show: Show,
) -> None:
    """Find the place of a failure: kernel, operator, value, line of the source.

    Does all that run does, and also determines the place if the diagnosis does not need it: the timeline of a healthy
    model, the values of every kernel, and, with --reference, which step of the compiler produces the wrong numbers.
    """
    wanted = replace(wanted, localize=True)
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "localize",
        package,
        show,
        lambda on_event: diagnose.diagnose(
            package, inputs, wanted, command="localize", argv=argv(), environ=os.environ, on_event=on_event
        ),
    )
