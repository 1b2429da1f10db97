"""``aotidoctor check``: the static part only; no torch, no native code executed."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options


@shown("package", "inputs", "reference", "host", "setup", "custom_op_library", "weights")
def check(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    generate: opt.Generate = False,
    model_name: opt.ModelName = None,
    device: opt.Device = None,
    setup: opt.Setup = None,
    custom_op_library: opt.CustomOpLibrary = None,
    reference: opt.Reference = None,
    host: opt.Host = None,
    weights: opt.Weights = None,
    trust_pickle: opt.TrustPickle = False,
    seed: opt.Seed = 0,
    threads: opt.Threads = None,
    show: Show,
) -> None:
    """Compare package, inputs and host without running anything.

    Executes nothing from PACKAGE or the inputs file, and needs no torch.
    """
    opt.one_source(inputs, generate=generate)
    wanted = Options(
        model_name=model_name,
        device=device,
        setup=setup,
        custom_op_libraries=tuple(custom_op_library or ()),
        reference=reference,
        host=host,
        weights=weights,
        generate=generate,
        seed=seed,
        threads=threads,
        trust_pickle=trust_pickle,
    )
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
