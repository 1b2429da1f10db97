"""``aotidoctor minimize``: the smallest part of a program that still fails in the same way."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.answer import answering, document
from aotidoctor.cli.asked import asked
from aotidoctor.cli.show import say, write_stdout
from aotidoctor.model.case import Options
from aotidoctor.model.phrases import plural
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.commands.minimize.minimize import Minimized

_BUDGET = 1800.0
Program = Annotated[str, typer.Option("--reference", metavar="FILE", help="The exported program behind the package.")]
Folder = Annotated[
    Path,
    typer.Option(
        "--output-dir", "-o", metavar="DIR", help="Folder for the result; an unfinished search in it continues."
    ),
]
Budget = Annotated[float, typer.Option(parser=opt.duration, metavar="TIME", help="Time limit of the search.")]
Repro = Annotated[bool, typer.Option("--repro/--no-repro", help="Also write a script that fails in the same way.")]


@asked("model_name setup custom_op_library trust_pickle memory_limit")
def minimize(
    package: opt.Package,
    *,
    inputs: opt.RequiredInputs,
    reference: Program,
    output_dir: Folder = Path("minimized"),
    budget: Budget = _BUDGET,
    timeout: opt.Timeout = 60.0,
    repro: Repro = True,
    wanted: Options,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    redact: opt.Redact = True,
) -> None:
    """Find the smallest program that still fails in the same way.

    Removes operators from the exported program, compiles the rest and calls it with the values from the whole program,
    each step in a child. Writes program, inputs and package of the smallest part that fails in the same way, and a
    script. Exit status: 1 found; 0 the call does not fail; 3 the program, compiled here, does not fail in the same way;
    6 the budget ended the search, and the same command continues it.
    """
    from aotidoctor.commands.minimize.folder import SCHEMA  # noqa: PLC0415 - `--help` does not need it
    from aotidoctor.commands.minimize.minimize import minimize as search  # noqa: PLC0415 - likewise

    options = replace(wanted, reference=reference, budget=budget, timeout=timeout)
    with answering(SCHEMA if json else None, package):
        found = search(
            package,
            inputs,
            options,
            output_dir,
            environ=os.environ,
            on_step=lambda text: None if quiet else say(f"{text}\n"),
            with_repro=repro,
        )
    from aotidoctor.reports.redact import redacted  # noqa: PLC0415 - after the work

    shown = redacted(found, os.environ) if redact else found
    if json:
        write_stdout(document(SCHEMA, asdict(shown)))
    else:
        write_stdout(_text(shown))
    raise typer.Exit({"healthy": 0, "smallest": 1, "package-only": 3, "unfinished": 6}[found.ending])


def _text(found: Minimized) -> str:
    reason = one_line(found.reason or "")
    if found.ending == "healthy":
        return f" HEALTHY  {reason}\n"
    if found.ending == "package-only":
        return f" NOT REPRODUCED  the program does not fail in the same way when it is compiled here: {reason}\n"
    if not found.operators:
        return f" UNFINISHED  {reason}\n"
    head = "SMALLEST" if found.ending == "smallest" else "UNFINISHED"
    more = f" ({reason}; the same command continues)" if found.ending == "unfinished" else ""
    fails = one_line(" ".join(found.manner))
    lines = [
        f" {head}  {plural(len(found.operators), 'operator')} of {found.of} still fail in the same way: {fails}{more}",
        *(
            f"   {one_line(name)}: {one_line(target)}"
            for name, target in zip(found.operators, found.targets, strict=False)
        ),
        f" Files   {found.directory}: exported.pt2, sample.pt, model.pt2",
        f" Tried   {plural(found.asked, 'part')} compiled now",
        *([f" Script  {one_line(found.repro)}"] if found.repro else []),
    ]
    return "\n".join(lines) + "\n"
