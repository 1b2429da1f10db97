"""``aotidoctor localize``: where it is - the call, the kernel, the operator, the line."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import EmulateWhen, Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options


@shown("package", "inputs", "reference", "setup", "custom_op_library")
def localize(
    package: opt.Package,
    inputs: opt.RequiredInputs,
    *,
    model_name: opt.ModelName = None,
    device: opt.Device = None,
    setup: opt.Setup = None,
    custom_op_library: opt.CustomOpLibrary = None,
    reference: opt.Reference = None,
    trust_pickle: opt.TrustPickle = False,
    timeout: opt.Timeout = 60.0,
    budget: opt.Budget = None,
    threads: opt.Threads = None,
    memory_limit: opt.MemoryLimit = None,
    emulate: opt.Emulate = EmulateWhen.AUTO,
    emulate_kernel: opt.EmulateKernel = None,
    shrink: opt.Shrink = False,
    show: Show,
) -> None:
    """Find the place of a failure: kernel, operator, value, line of the source.

    Does all that run does, and asks for the place also where the diagnosis does not need it: the timeline of a healthy
    model, the values of every kernel, and, with --reference, which step of the compiler makes the numbers wrong.
    """
    wanted = Options(
        model_name=model_name,
        device=device,
        setup=setup,
        custom_op_libraries=tuple(custom_op_library or ()),
        reference=reference,
        timeout=timeout,
        budget=budget,
        threads=threads,
        trust_pickle=trust_pickle,
        memory_limit=memory_limit,
        emulate=emulate.value if emulate_kernel is None else EmulateWhen.ALWAYS.value,
        emulate_kernel=emulate_kernel,
        localize=True,
        shrink=shrink,
    )
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "localize",
        package,
        show,
        lambda on_event: diagnose.diagnose(
            package, inputs, wanted, command="localize", argv=argv(), environ=os.environ, on_event=on_event
        ),
    )
