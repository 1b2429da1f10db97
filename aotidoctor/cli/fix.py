"""``aotidoctor fix``: write a repaired copy of a package."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.show import warn, write_stdout
from aotidoctor.cli.urls import fetched
from aotidoctor.version import __version__

SCHEMA = "aotidoctor.fix/1"
Name = Annotated[str, typer.Argument(metavar="FIX", help="execstack: clears the flag for an executable stack.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where the repaired copy goes.")]


@fetched("package")
def fix(name: Name, package: opt.Package, output: Output, *, json: opt.Json = False) -> None:
    """Write a repaired copy of a package.

    Executes nothing from PACKAGE, never writes to it, and changes only the bytes that it reports.
    """
    from aotidoctor.commands import fix as command  # noqa: PLC0415 - `--help` does not need it
    from aotidoctor.model.errors import AotidoctorError, UsageError  # noqa: PLC0415 - likewise

    try:
        done = command.fix(name, package, output)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except AotidoctorError as error:
        if json:
            _print_json({"package": package, "cannot_examine": str(error)})
        warn(str(error))
        raise typer.Exit(error.exit_status) from error
    if json:
        _print_json(asdict(done))
        return
    lines = [f"{done.output}: {command.FIXES[done.fix]}", *(f"  {change}" for change in done.changes)]
    nothing = f"{done.output}: a copy as it is; nothing had to be changed"
    write_stdout("\n".join(lines if done.changes else [nothing]) + "\n")


def _print_json(body: dict[str, object]) -> None:
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415 - for JSON only

    write_stdout(dumps({"schema": SCHEMA, "tool": {"name": "aotidoctor", "version": __version__}, **body}))
