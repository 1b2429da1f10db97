"""``aotidoctor watch -- PROGRAM...``: run any program untouched, triage it if it fails.

stdout, stderr and exit status are the program's; what we say comes after its end, on stderr.
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
from aotidoctor.cli.show import IssueForm, Show, rendered, say, warn, write_report
from aotidoctor.cli.shown import make_show
from aotidoctor.model.watched import Program, Watched
from aotidoctor.runner.watch import die_as, is_good
from aotidoctor.runner.watch import watch as run_watched

if TYPE_CHECKING:
    from aotidoctor.commands.watch.repeats import Again
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
    given = Program(argv=tuple(program), limit=timeout, core=core)
    watched = run_watched(given, os.environ, keep=always)
    if watched.exec_error is not None:
        say(f"aotidoctor: watch: {watched.exec_error}\n")
        _leave(watched)
    if not always and is_good(watched.ending, watched.asked):
        _leave(watched)
    from aotidoctor.model.case import Options  # noqa: PLC0415 - for a failure only

    options = Options(
        setup=setup,
        custom_op_libraries=tuple(custom_op_library or ()),
        reference=reference,
    )
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
    watched: Watched,
    given: Program,
    show: Show,
    *,
    rerun: bool,
    package: str | None,
    inputs: str | None,
    options: Options,
) -> None:
    """Everything after a failure. Its modules are imported here: a program that ends well does not pay for them."""
    from aotidoctor.cli.execute import argv, kept  # noqa: PLC0415 - likewise
    from aotidoctor.cli.progress import make_progress  # noqa: PLC0415 - likewise
    from aotidoctor.commands.watch import report as watching  # noqa: PLC0415 - see above
    from aotidoctor.reports.redact import redacted  # noqa: PLC0415 - likewise
    from aotidoctor.runner.watch_core import autopsy  # noqa: PLC0415 - likewise

    with tempfile.TemporaryDirectory(prefix="aotidoctor-") as room:
        watched = autopsy(watched, os.environ, room)
    wish = watching.Wish(
        package=_there("--package", package),
        inputs=_there("--inputs", inputs),
        options=options,
        again=_again() if rerun else None,
        has_gdb=shutil.which("gdb") is not None,
        limit=given.limit or min(max(RERUN_LIMIT_S, 2 * watched.seconds), LONGEST_RERUN_S),
    )
    progress = make_progress(sys.stderr, os.environ, quiet=show.detail < 0 or not (rerun or inputs))
    if rerun and reads_input():
        say("aotidoctor: the program's input cannot be replayed: the second run gets no input\n")
    # What is asked for besides documents may need the recorded inputs.
    with tempfile.TemporaryDirectory(prefix="aotidoctor-") as room:
        with progress:
            wish = replace(wish, room=room)
            made = watching.report_on(watched, wish, argv=argv(), environ=os.environ, on_event=progress.on_event)
        made = kept(made, show.cases, os.environ)
        show_on_stderr(made, redacted(made, os.environ) if show.redact else made, show)


def show_on_stderr(made: Report, shown: Report, show: Show, *, printed: bool = True) -> None:
    """The first screen on stderr, the documents where they were asked for; ``shown`` is the redacted report."""
    from aotidoctor.cli.extras import write_extras  # noqa: PLC0415 - for a failure only
    from aotidoctor.reports.terminal.render import text  # noqa: PLC0415 - likewise

    if printed:
        screen = text(shown, stream=sys.stderr or io.StringIO(), environ=os.environ, detail=show.detail or -1)
        say(f"\n{screen}")
    for kind, path in show.files:
        write_report(path, rendered(shown, kind, show, os.environ))
    write_extras(made, show.extras, os.environ, redact=show.redact)


def _again() -> Again:
    from aotidoctor.runner.watch_again import watch_again  # noqa: PLC0415 - with --rerun only

    return lambda program, debugger: watch_again(program, os.environ, debugger=debugger)


def reads_input() -> bool:
    """Whether the program may have read something that is gone now: a terminal's keys, or what came from a pipe."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(0)


def _leave(watched: Watched) -> NoReturn:
    """End as the program did, without the interpreter's own tidying up: there is nothing to tidy."""
    os._exit(die_as(watched))
