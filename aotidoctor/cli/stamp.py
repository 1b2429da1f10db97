"""``aotidoctor stamp``: a copy of a package that says where it comes from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.answer import answering, document
from aotidoctor.cli.show import write_stdout
from aotidoctor.cli.urls import fetched

SCHEMA = "aotidoctor.stamped/1"
Exported = Annotated[
    str, typer.Option("--exported", metavar="FILE", help="The program that the package was compiled from.")
]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Path of the stamped copy.")]


@fetched("package", "exported")
def stamp(
    package: opt.Package,
    *,
    exported: Exported,
    output: Output,
    model_name: opt.ModelName = None,
    json: opt.Json = False,
) -> None:
    """Write a copy of a package that states its origin.

    Executes nothing, and needs no torch. The stamp in the metadata contains hashes of program and weights, ranges as
    exported, values fixed at export and the sample's metadata, never tensor values. Every other member of the archive
    is unchanged.
    """
    from aotidoctor.commands.stamp.stamp import stamp_package  # noqa: PLC0415 - `--help` does not need it

    with answering(SCHEMA if json else None, package):
        done = stamp_package(package, exported, output, model_name=model_name)
    if json:
        write_stdout(document(SCHEMA, asdict(done)))
        return
    lines = [
        f"{done.output}: stamped",
        f"  program  {done.program[:16]}",
        f"  torch    {done.torch or 'not known'}",
        f"  weights  {done.hashed_weights} hashed",
        *(f"  note     {doubt}" for doubt in done.doubts),
    ]
    write_stdout("\n".join(lines) + "\n")
