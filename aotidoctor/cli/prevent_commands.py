"""``aotidoctor verify``, ``contract``, ``sweep``, ``compat``, ``stamp``, ``fix``, ``minimize``: prevent failures."""

from __future__ import annotations

import enum
import os
import sys
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import (
    FailOn,
    Show,
    chosen_format,
    exit_with_error_document,
    json_document,
    notice_wait,
    write_formats,
    write_output,
    write_stderr,
    write_stdout,
)
from aotidoctor.cli.execute import argv, execute, within_limits
from aotidoctor.cli.options import with_options
from aotidoctor.cli.url_arguments import with_fetched_urls
from aotidoctor.interruption import held
from aotidoctor.model.case import Options
from aotidoctor.model.evidence import plural
from aotidoctor.reports.text import one_line

if TYPE_CHECKING:
    from aotidoctor.commands.minimize import Minimized
    from aotidoctor.model.fleet import Sweep, SweepRow


ProgramArgument = Annotated[
    str, typer.Argument(metavar="PROGRAM", help="exported.pt2, or module.py:function that returns a program.")
]
DynamicShapes = Annotated[
    str | None,
    typer.Option(metavar="FILE", help='JSON of the dynamic shapes requested at export: {"x": {"0": "batch"}}.'),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--package",
        metavar="FILE",
        help="Check whether this package was compiled from the program. The package is not loaded.",
    ),
]


@with_options(
    "program",
    "dynamic_shapes",
    "against",
    "model_name",
    case="model_name model setup custom_op_library timeout memory_limit",
    timeout=300.0,
)
def verify(
    program: ProgramArgument,
    *,
    dynamic_shapes: DynamicShapes = None,
    against: Against = None,
    wanted: Options,
    show: Show,
) -> None:
    """List every rule that an exported program breaks, and what AOTInductor will fail on.

    Rebuilds PROGRAM with torch in a child process, where its pickled parts may run code. The program itself is run only
    where a remedy is tried.
    """
    from aotidoctor.commands import verify as verification

    question = verification.VerifyRequest(
        program=program, options=wanted, dynamic_shapes=dynamic_shapes, against=against
    )
    execute(
        "verify",
        program,
        show,
        lambda on_event: verification.verify(question, argv=argv(), environ=os.environ, on_event=on_event),
        static=True,
    )


class ContractFormat(str, enum.Enum):
    """Formats of the contract."""

    PYTHON = "python"
    JSON = "json"
    CPP = "cpp"
    PBTXT = "pbtxt"


Emit = Annotated[
    ContractFormat,
    typer.Option("--emit", help="A Python module, a JSON Schema, a C++ header, or Triton's config.pbtxt."),
]
ContractOutput = Annotated[str | None, opt.output("FILE", "Output file. [default: stdout]")]


@with_fetched_urls("package", "inputs", "reference")
def contract(
    package: opt.Package,
    *,
    emit: Emit = ContractFormat.PYTHON,
    inputs: opt.Inputs = None,
    reference: opt.Reference = None,
    model_name: opt.ModelName = None,
    output: ContractOutput = None,
) -> None:
    """Write an input validator to ship with a package.

    Executes nothing from PACKAGE, and needs no torch. The validator refuses what the compiled code would compute
    wrongly, and accepts what is harmless. With --reference it also checks the values that were fixed at export.
    """
    from aotidoctor.commands.contract.emit import emit as written

    opt.refuse_inputs(filter(None, [output]), (package, inputs, reference), option="--output")
    with exit_with_error_document(None, package), within_limits():
        text = written(
            emit.value, package, inputs=inputs, reference=reference, model_name=model_name, environ=os.environ
        )
    if output is None:
        write_stdout(text)
    else:
        write_output(output, text)


_SWEEP_BUDGET, _TIMEOUT = 300.0, 30.0


class SweepFormat(str, enum.Enum):
    """Formats of a sweep."""

    RICH = "rich"
    MD = "md"
    JSON = "json"
    HTML = "html"


ReportTo = Annotated[list[str] | None, opt.report_to("Also write json, md or html to a file; repeatable.")]
SweepBudget = Annotated[
    float, typer.Option(parser=opt.duration, metavar="TIME", help="Time limit of the whole command.")
]
Calls = Annotated[int | None, typer.Option("--calls", min=1, metavar="N", help="Make at most N calls. [default: all]")]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose", "-v", count=True, help="Also show the calls on which all agree.", rich_help_panel=opt.OUTPUT
    ),
]


@with_options(case="timeout setup custom_op_library model_name seed memory_limit", timeout=_TIMEOUT)
def sweep(
    package: opt.Package,
    *,
    reference: opt.Reference = None,
    budget: SweepBudget = _SWEEP_BUDGET,
    calls: Calls = None,
    wanted: Options,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    format_: Annotated[SweepFormat | None, opt.FORMAT] = None,
    json: opt.Json = False,
    report: ReportTo = None,
    quiet: opt.Quiet = False,
    verbose: Verbose = 0,
    redact: opt.Redact = True,
) -> None:
    """Try a package at the boundary of its contract.

    Tries sizes at their bounds and beyond, dtypes, strides, ranks, None, keys, indices, and pairs of them, each in a
    child. Shows whether the contract accepts the call, what the package does, and with --reference what the program
    does. Exit status 1: a call that the contract accepts fails or is wrong; with --fail-on warn also: something is
    silently computed wrongly.
    """
    from aotidoctor.commands.sweep.run_sweep import sweep as ask
    from aotidoctor.reports.cases_and_sweeps import SWEEP_SCHEMA

    chosen = chosen_format(format_, SweepFormat.RICH, json=json)
    named = [opt.split_report_spec(text, ("json", "md", "html")) for text in report or ()]
    opt.refuse_inputs([path for _, path in named], [package])
    files = [(SweepFormat(name), path) for name, path in named]
    options = replace(wanted, reference=reference, budget=budget)
    with held():
        with exit_with_error_document(SWEEP_SCHEMA if chosen is SweepFormat.JSON else None, package, redact=redact):
            found = ask(
                package, options, environ=os.environ, most=calls, on_row=(lambda *_: None) if quiet else _print_progress
            )
        if redact:
            from aotidoctor.reports.redact.redactor import redact_private

            found = redact_private(found, os.environ)
        write_formats(lambda kind: _render_sweep(found, kind, verbose), chosen, files)
    raise typer.Exit(_sweep_status(found, fail_on))


def _sweep_status(found: Sweep, fail_on: FailOn) -> int:
    from aotidoctor.model.fleet import SweepVerdict

    wanted = {
        FailOn.ERROR: {SweepVerdict.FAULT},
        FailOn.WARN: {SweepVerdict.FAULT, SweepVerdict.UNGUARDED},
        FailOn.INFO: {SweepVerdict.FAULT, SweepVerdict.UNGUARDED, SweepVerdict.REFUSED},
        FailOn.NEVER: set[SweepVerdict](),
    }[fail_on]
    return int(any(row.judged in wanted for row in found.rows))


def _render_sweep(found: Sweep, chosen: SweepFormat, detail: int) -> str:
    from aotidoctor.reports import cases_and_sweeps

    match chosen:
        case SweepFormat.JSON:
            return json_document(cases_and_sweeps.SWEEP_SCHEMA, cases_and_sweeps.sweep_document(found))
        case SweepFormat.MD:
            return cases_and_sweeps.sweep_markdown(found)
        case SweepFormat.HTML:
            return cases_and_sweeps.sweep_page(found)
        case SweepFormat.RICH:
            stream = sys.stdout or StringIO()
            return cases_and_sweeps.sweep_text(found, stream=stream, environ=os.environ, detail=detail)


def _print_progress(row: SweepRow, at: int, of: int) -> None:
    """A line of progress."""
    if sys.stderr is not None:
        text = one_line(
            f"{row.subject}: {row.change or 'nothing changed'}: {row.package.value} ({row.judged.value})", 110
        )
        typer.echo(f"{at}/{of} {text}", err=True)


Packages = Annotated[list[str], typer.Argument(metavar="PACKAGE...", help="The .pt2 files.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="PROFILE",
        help="A file of `env --save`, a built-in name, or here; repeatable.",
        autocompletion=opt.offer(opt.known_hosts),
    ),
]
Torches = Annotated[
    list[str] | None,
    typer.Option("--torch", metavar="VERSION", help="With this torch (2.15, 2.8.0+cu128) instead; repeatable."),
]


@with_options("packages", "host")
def compat(
    packages: Packages, *, host: Hosts = None, torch: Torches = None, model_name: opt.ModelName = None, show: Show
) -> None:
    """Show on which hosts packages will run, and why not.

    Executes nothing from PACKAGE, and needs no torch. Exit status 3: undetermined for one of the hosts.
    """
    from aotidoctor.commands.compat import compat as answer

    execute(
        "compat",
        packages[0],
        show,
        lambda _: answer(packages, host or (), torch or (), model_name=model_name, argv=argv(), environ=os.environ),
    )


STAMP_SCHEMA = "aotidoctor.stamped/1"
Exported = Annotated[
    str, typer.Option("--reference", metavar="FILE", help="The program that the package was compiled from.")
]
StampOutput = Annotated[str, opt.output("FILE", "Path of the stamped copy.")]


@with_fetched_urls("package", "exported")
def stamp(
    package: opt.Package,
    *,
    exported: Exported,
    output: StampOutput,
    model_name: opt.ModelName = None,
    json: opt.Json = False,
) -> None:
    """Write a copy of a package that states its origin.

    Executes nothing, and needs no torch. The stamp in the metadata contains hashes of program and weights, ranges as
    exported, values fixed at export and the sample's metadata, never tensor values. Every other member of the archive
    is unchanged.
    """
    from aotidoctor.commands.stamp_and_fix import stamp_package

    with exit_with_error_document(STAMP_SCHEMA if json else None, package), notice_wait(f"copying {package}"):
        done = stamp_package(package, exported, output, model_name=model_name)
    if json:
        write_stdout(json_document(STAMP_SCHEMA, asdict(done)))
        return
    lines = [
        f"{done.output}: stamped",
        f"  program  {done.program[:16]}",
        f"  torch    {done.torch or 'not known'}",
        f"  weights  {done.hashed_weights} hashed",
        *(f"  note     {doubt}" for doubt in done.doubts),
    ]
    write_stdout("\n".join(lines) + "\n")


FIX_SCHEMA = "aotidoctor.fix/1"
Name = Annotated[
    str,
    typer.Argument(
        metavar="FIX",
        help="execstack: clears the flag for an executable stack.",
        autocompletion=opt.offer(lambda: ("execstack",)),
    ),
]
FixOutput = Annotated[str, opt.output("FILE", "Path of the repaired copy.")]


@with_fetched_urls("package")
def fix(name: Name, package: opt.Package, output: FixOutput, *, json: opt.Json = False) -> None:
    """Write a repaired copy of a package.

    Executes nothing from PACKAGE, never writes to it, and changes only the bytes that it reports.
    """
    from aotidoctor.commands import stamp_and_fix as command

    with exit_with_error_document(FIX_SCHEMA if json else None, package), notice_wait(f"copying {package}"):
        done = command.fix(name, package, output)
    if json:
        write_stdout(json_document(FIX_SCHEMA, asdict(done)))
        return
    lines = [f"{done.output}: {command.FIXES[done.fix]}", *(f"  {change}" for change in done.changes)]
    nothing = f"{done.output}: an identical copy; no change was needed"
    write_stdout("\n".join(lines if done.changes else [nothing]) + "\n")


_MINIMIZE_BUDGET = 1800.0
ReferenceProgram = Annotated[
    str, typer.Option("--reference", metavar="FILE", help="The exported program behind the package.")
]
Folder = Annotated[Path, opt.output("DIR", "Folder for the result; an unfinished search in it continues.")]
MinimizeBudget = Annotated[float, typer.Option(parser=opt.duration, metavar="TIME", help="Time limit of the search.")]
Repro = Annotated[bool, typer.Option("--repro/--no-repro", help="Also write a script that fails in the same way.")]


@with_options(case="model_name setup custom_op_library trust_pickle memory_limit")
def minimize(
    package: opt.Package,
    *,
    inputs: opt.RequiredInputs,
    reference: ReferenceProgram,
    output_dir: Folder = Path("minimized"),
    budget: MinimizeBudget = _MINIMIZE_BUDGET,
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
    from aotidoctor.commands.minimize import MINIMIZE_SCHEMA
    from aotidoctor.commands.minimize import minimize as search

    options = replace(wanted, reference=reference, budget=budget, timeout=timeout)
    with held():
        with exit_with_error_document(MINIMIZE_SCHEMA if json else None, package, redact=redact):
            found = search(
                package,
                inputs,
                options,
                output_dir,
                environ=os.environ,
                on_step=lambda text: None if quiet else write_stderr(f"{text}\n"),
                with_repro=repro,
            )
        from aotidoctor.reports.redact.redactor import redact_private

        redacted = redact_private(found, os.environ) if redact else found
        if json:
            write_stdout(json_document(MINIMIZE_SCHEMA, asdict(redacted)))
        else:
            write_stdout(_minimize_text(redacted))
    raise typer.Exit({"healthy": 0, "smallest": 1, "package-only": 3, "unfinished": 6}[found.ending])


def _minimize_text(found: Minimized) -> str:
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
