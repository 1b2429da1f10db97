"""``aotidoctor repro``: a script that fails as the call does, with torch alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options

Folder = Annotated[Path, typer.Option("--output-dir", "-o", metavar="DIR", help="Folder to write the script to.")]
From = Annotated[
    str | None, typer.Option("--from", metavar="REPORT", help="A JSON report of this case: no new diagnosis.")
]
KeepWeights = Annotated[bool, typer.Option("--keep-weights", help="Copy the package as it is.")]


@shown("package", "inputs", "reference", "setup", "from_", "custom_op_library")
def repro(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    output_dir: Folder = Path("repro"),
    from_: From = None,
    keep_weights: KeepWeights = False,
    model_name: opt.ModelName = None,
    device: opt.Device = None,
    setup: opt.Setup = None,
    custom_op_library: opt.CustomOpLibrary = None,
    reference: opt.Reference = None,
    rtol: opt.Rtol = None,
    atol: opt.Atol = None,
    trust_pickle: opt.TrustPickle = False,
    timeout: opt.Timeout = 60.0,
    budget: opt.Budget = None,
    threads: opt.Threads = None,
    memory_limit: opt.MemoryLimit = None,
    show: Show,
) -> None:
    """Write a short script that fails in the same way, and prove that it does.

    Diagnoses as run does, then tries a script with torch alone: made-up inputs first, then the values that matter;
    weights zeroed first. It is written only if it ends the same way in a fresh interpreter, and its package and inputs
    get the same signature. The folder must be empty, or of an earlier repro.
    """
    wanted = Options(
        model_name=model_name,
        device=device,
        setup=setup,
        custom_op_libraries=tuple(custom_op_library or ()),
        reference=reference,
        tolerances=opt.tolerances(rtol, atol),
        timeout=timeout,
        budget=budget,
        threads=threads,
        trust_pickle=trust_pickle,
        memory_limit=memory_limit,
    )
    from aotidoctor.commands.repro import command  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "repro",
        package,
        show,
        lambda on_event: command.repro(
            package,
            inputs,
            wanted,
            output_dir,
            saved=from_,
            keep_weights=keep_weights,
            redact=show.redact,
            argv=argv(),
            environ=os.environ,
            on_event=on_event,
        ),
    )
