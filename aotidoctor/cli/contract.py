"""``aotidoctor contract``: the contract of a package as something to ship."""

from __future__ import annotations

import enum
import os
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.answer import answering
from aotidoctor.cli.limits import limited
from aotidoctor.cli.show import write_output, write_stdout
from aotidoctor.cli.urls import fetched


class Form(str, enum.Enum):
    """What is written."""

    PYTHON = "python"
    JSON = "json"
    CPP = "cpp"
    PBTXT = "pbtxt"


Emit = Annotated[
    Form,
    typer.Option("--emit", help="A Python module, a JSON Schema, a C++ header, or Triton's config.pbtxt."),
]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Output file. [default: stdout]")]


@fetched("package", "inputs", "reference")
def contract(
    package: opt.Package,
    *,
    emit: Emit = Form.PYTHON,
    inputs: opt.Inputs = None,
    reference: opt.Reference = None,
    model_name: opt.ModelName = None,
    output: Output = None,
) -> None:
    """Write an input validator to ship with a package.

    Executes nothing from PACKAGE, and needs no torch. The validator refuses what the compiled code would compute
    wrongly, and accepts what is harmless. With --reference it also checks the values that were fixed at export.
    """
    from aotidoctor.commands.contract.emit import emit as written  # noqa: PLC0415 - `--help` does not need it

    if output is not None and os.path.realpath(output) in map(
        os.path.realpath, filter(None, (package, inputs, reference))
    ):
        raise typer.BadParameter(f"{output} is an input of this command and is not overwritten", param_hint="--output")
    with answering(None, package), limited():
        text = written(
            emit.value, package, inputs=inputs, reference=reference, model_name=model_name, environ=os.environ
        )
    if output is None:
        write_stdout(text)
    else:
        write_output(output, text)
