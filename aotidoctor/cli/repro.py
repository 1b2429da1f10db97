"""``aotidoctor repro``: a script that fails as the call does, with torch alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options

Folder = Annotated[Path, typer.Option("--output-dir", "-o", metavar="DIR", help="Folder to write the script to.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="REPORT", help="Use this JSON report of the case instead of a new diagnosis."),
]
KeepWeights = Annotated[bool, typer.Option("--keep-weights", help="Copy the package unchanged.")]


@shown("package", "inputs", "reference", "setup", "from_", "custom_op_library")
@asked("model_name device setup custom_op_library reference rtol atol trust_pickle timeout budget threads memory_limit")
def repro(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    output_dir: Folder = Path("repro"),
    from_: From = None,
    keep_weights: KeepWeights = False,
    wanted: Options,
    show: Show,
) -> None:
    """Write a short script that fails in the same way, and prove that it does.

    Diagnoses as run does, then tries a script with torch alone: generated inputs first, then the values that matter;
    weights zeroed first. The script is written only if it ends in the same way in a fresh interpreter, and its package
    and inputs get the same signature. The folder must be empty, or contain an earlier repro.
    """
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
