"""``aotidoctor verify``: the exported program behind a package, before it is compiled."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options

Program = Annotated[
    str,
    typer.Argument(metavar="PROGRAM", help="exported.pt2, or module.py:function that returns a program."),
]
DynamicShapes = Annotated[
    str | None,
    typer.Option(metavar="FILE", help='JSON of the dynamic shapes requested at export: {"x": {"0": "batch"}}.'),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="PACKAGE", help="Check whether this package was compiled from the program. The package is not loaded."
    ),
]


@shown("program", "dynamic_shapes", "against", "model_name", "setup", "custom_op_library")
@asked("model_name setup custom_op_library timeout memory_limit", timeout=300.0)
def verify(
    program: Program,
    *,
    dynamic_shapes: DynamicShapes = None,
    against: Against = None,
    wanted: Options,
    show: Show,
) -> None:
    """List every rule that an exported program breaks, and what AOTInductor will fail on.

    Rebuilds PROGRAM with torch in a child process, where its pickled parts may run code; the program itself is not run.
    """
    from aotidoctor.commands import verify as verification  # noqa: PLC0415 - `--help` does not need the stages

    question = verification.Question(program=program, options=wanted, dynamic_shapes=dynamic_shapes, against=against)
    execute(
        "verify",
        program,
        show,
        lambda on_event: verification.verify(question, argv=argv(), environ=os.environ, on_event=on_event),
        static=True,
    )
