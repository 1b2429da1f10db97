"""``aotidoctor watch -- PROGRAM...``: run a program unchanged and triage it if it fails.

Apart from the other diagnosing commands: it imports the runner of watched programs at start-up.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
import sys
import tempfile
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import (
    IssueForm,
    Show,
    exit_on_error,
    render_report,
    warn,
    write_report,
    write_stderr,
)
from aotidoctor.cli.options import make_show
from aotidoctor.model.run import ProgramToWatch, WatchedProgram
from aotidoctor.runner import demand_linux

if TYPE_CHECKING:
    from aotidoctor.model.case import Options
    from aotidoctor.model.report import Report

Command = Annotated[list[str], typer.Argument(metavar="[--] PROGRAM [ARG]...", help="The program and its arguments.")]
Rerun = Annotated[
    bool,
    typer.Option(
        "--rerun", help="After a failure, run it again, without input: record its call, then try diagnostic settings."
    ),
]
Core = Annotated[bool, typer.Option("--core", help="Allow core files: raise the program's soft limit.")]
Always = Annotated[bool, typer.Option("--always", help="Write a report even if the program succeeds.")]
Limit = Annotated[
    float | None,
    typer.Option("--timeout", parser=opt.duration, metavar="TIME", help="Stop the program after this time."),
]
UsedPackage = Annotated[
    str | None,
    typer.Option("--package", metavar="FILE", help="The package that the program uses, if it is not detected."),
]
RERUN_LIMIT_S, LONGEST_RERUN_S = 120.0, 1800.0


def watch(
    program: Command,
    *,
    rerun: Rerun = False,
    timeout: Limit = None,
    core: Core = False,
    always: Always = False,
    package: UsedPackage = None,
    inputs: opt.Inputs = None,
    setup: opt.Setup = None,
    custom_op_library: opt.CustomOpLibrary = None,
    reference: opt.Reference = None,
    cases: opt.Cases = None,
    report: opt.ReportTo = None,
    for_: opt.For = IssueForm.GENERIC,
    output_dir: opt.OutputDir = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = 0,
    redact: opt.Redact = True,
) -> None:
    """Run any program unchanged, and triage it if it fails.

    Its output, exit status and signals are its own. With --inputs native code of the package is executed again after a
    failure, with --rerun the whole program.
    """
    show = make_show(
        (package, inputs, reference, setup, cases, *(custom_op_library or ()), *program),
        report=report,
        output_dir=output_dir,
        quiet=quiet,
        verbose=verbose,
        redact=redact,
        for_=for_,
    )
    show = replace(show, cases=cases)
    given = ProgramToWatch(argv=tuple(program), limit=timeout, core=core)
    with exit_on_error():
        demand_linux()
    from aotidoctor.runner.watch import is_good_ending, run_watched

    watched = run_watched(given, os.environ, keep=always)
    if watched.exec_error is not None:
        write_stderr(f"aotidoctor: watch: {watched.exec_error}\n")
        _leave(watched)
    if not always and is_good_ending(watched.ending, watched.asked):
        _leave(watched)
    from aotidoctor.model.case import Options

    options = Options(setup=setup, custom_op_libraries=tuple(custom_op_library or ()), reference=reference)
    # Whatever happens to us, the program's end is what counts.
    with contextlib.suppress(KeyboardInterrupt):
        try:
            _triage(watched, given, show, rerun=rerun, package=package, inputs=inputs, options=options)
        except Exception:  # noqa: BLE001 - the guard: our own failure is told, and changes nothing
            warn(f"no report on the program:\n{traceback.format_exc(limit=-4)}")
    _leave(watched)


def _there(option: str, path: str | None) -> str | None:
    """``path``; None where there is no such file: a slip of ours is no cause of the program's failure.

    Asked after its end: the program may have written the file.
    """
    if path is None or Path(path).exists():
        return path
    warn(f"{option} {path}: no such file; the program is examined without it")
    return None


def _triage(
    watched: WatchedProgram,
    given: ProgramToWatch,
    show: Show,
    *,
    rerun: bool,
    package: str | None,
    inputs: str | None,
    options: Options,
) -> None:
    """Everything after a failure. Its modules are imported here: a program that ends well does not pay for them."""
    from aotidoctor.cli.execute import argv, make_progress, store_case
    from aotidoctor.commands.watch import watch_report as watching
    from aotidoctor.reports.redact.redactor import redact_private
    from aotidoctor.runner.core_file import examine_core
    from aotidoctor.runner.watch_again import watch_again

    with tempfile.TemporaryDirectory(prefix="aotidoctor-") as room:
        watched = examine_core(watched, os.environ, room)
    request = watching.WatchRequest(
        package=_there("--package", package),
        inputs=_there("--inputs", inputs),
        options=options,
        again=(lambda program, debugger: watch_again(program, os.environ, debugger=debugger)) if rerun else None,
        has_gdb=shutil.which("gdb") is not None,
        limit=given.limit or min(max(RERUN_LIMIT_S, 2 * watched.seconds), LONGEST_RERUN_S),
    )
    progress = make_progress(sys.stderr, os.environ, quiet=show.detail < 0 or not (rerun or inputs), redact=show.redact)
    if rerun and reads_input():
        write_stderr("aotidoctor: the program's input cannot be replayed: the second run gets no input\n")
    # What is asked for besides documents may need the recorded inputs.
    with tempfile.TemporaryDirectory(prefix="aotidoctor-") as room:
        with progress:
            request = replace(request, room=room)
            made = watching.report_on_program(
                watched, request, argv=argv(), environ=os.environ, on_event=progress.on_event
            )
        made, _ = store_case(made, show.cases, os.environ)
        show_on_stderr(made, redact_private(made, os.environ) if show.redact else made, show)


def show_on_stderr(made: Report, shown: Report, show: Show, *, printed: bool = True) -> None:
    """Print the first screen on stderr, and write the requested documents; ``shown`` is the redacted report."""
    from aotidoctor.cli.document_output import write_extras
    from aotidoctor.reports.terminal.terminal_report import terminal_text

    if printed:
        screen = terminal_text(shown, stream=sys.stderr or io.StringIO(), environ=os.environ, detail=show.detail or -1)
        write_stderr(f"\n{screen}")
    for kind, path in show.files:
        write_report(path, render_report(shown, kind, show, os.environ))
    write_extras(made, show.extras, os.environ, redact=show.redact)


def reads_input() -> bool:
    """Whether the program may have read input that cannot be replayed: from a terminal or a pipe."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(0)


def _leave(watched: WatchedProgram) -> NoReturn:
    """End as the program did, without the interpreter's own tidying up: there is nothing to tidy."""
    from aotidoctor.runner.watch import exit_like

    os._exit(exit_like(watched))
