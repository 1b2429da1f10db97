"""``aotidoctor check``: the static part only; no torch, no native code executed."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options


@shown("package", "inputs", "reference", "host", "setup", "custom_op_library", "weights")
@asked("generate model_name device setup custom_op_library reference host weights trust_pickle seed threads")
def check(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    wanted: Options,
    show: Show,
) -> None:
    """Compare package, inputs and host without running anything.

    Executes nothing from PACKAGE or the inputs file, and needs no torch.
    """
    opt.one_source(inputs, generate=wanted.generate)
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "check",
        package,
        show,
        lambda on_event: diagnose.diagnose(
            package,
            inputs,
            wanted,
            argv=argv(),
            environ=os.environ,
            static_only=True,
            on_event=on_event,
        ),
        static=True,
    )
