"""``aotidoctor fix``: write a repaired copy of a package."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.answer import answering, document
from aotidoctor.cli.show import write_stdout
from aotidoctor.cli.urls import fetched

SCHEMA = "aotidoctor.fix/1"
Name = Annotated[str, typer.Argument(metavar="FIX", help="execstack: clears the flag for an executable stack.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Path of the repaired copy.")]


@fetched("package")
def fix(name: Name, package: opt.Package, output: Output, *, json: opt.Json = False) -> None:
    """Write a repaired copy of a package.

    Executes nothing from PACKAGE, never writes to it, and changes only the bytes that it reports.
    """
    from aotidoctor.commands import fix as command  # noqa: PLC0415 - `--help` does not need it

    with answering(SCHEMA if json else None, package):
        done = command.fix(name, package, output)
    if json:
        write_stdout(document(SCHEMA, asdict(done)))
        return
    lines = [f"{done.output}: {command.FIXES[done.fix]}", *(f"  {change}" for change in done.changes)]
    nothing = f"{done.output}: an identical copy; no change was needed"
    write_stdout("\n".join(lines if done.changes else [nothing]) + "\n")
