"""``aotidoctor demo``: a small model, broken in four ways, each triaged live."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import examined
from aotidoctor.cli.progress import make_progress
from aotidoctor.cli.show import Format, Show, rendered, warn, write_stdout
from aotidoctor.cli.shown import make_show
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.report import Report
from aotidoctor.reports.redact import Redactor, redacted
from aotidoctor.reports.status import OK, PROBLEM, UNKNOWN, exit_status

if TYPE_CHECKING:
    from aotidoctor.commands.demo import Patient

Seen = tuple["Patient", Report]


Cuda = Annotated[
    bool, typer.Option("--cuda", help="Instead, find a fault in a CUDA package without a GPU; compiles nothing.")
]
OfFleet = Annotated[
    bool, typer.Option("--fleet", help="Instead, check 60 packages of two nights and show what is new; needs pandas.")
]


def demo(
    *,
    cuda: Cuda = False,
    fleet: OfFleet = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    redact: opt.Redact = True,
) -> None:
    """Break a small model in four ways; triage each.

    The first call compiles the model, which takes a minute; later calls do not. Exit status 0: every cause was found.
    """
    if cuda and fleet:
        raise typer.BadParameter("--cuda and --fleet cannot be combined", param_hint="--fleet")
    show = make_show((), json=json, quiet=quiet, redact=redact)
    if fleet:
        _demo_fleet(show, os.environ)
    seen: list[Seen] = []
    for patient, report in _triaged(show, os.environ, cuda=cuda):
        seen.append((patient, report))
        if show.format is Format.RICH:
            write_stdout(_screen(len(seen), patient, report, os.environ))
    write_stdout(_as_json(seen) if show.format is Format.JSON else _by_hand(seen, os.environ))
    raise typer.Exit(_status(seen))


def _demo_fleet(show: Show, environ: Mapping[str, str]) -> NoReturn:
    """Sixty packages, two nights: what the second has that the first had not."""
    from aotidoctor.commands import demo_fleet  # noqa: PLC0415 - `--help` does not need the stages
    from aotidoctor.commands.fleet import rendered as fleet_in  # noqa: PLC0415 - likewise

    progress = make_progress(sys.stderr, environ, quiet=show.detail < 0)
    redactor = Redactor.of(environ)
    try:
        with progress:
            found = demo_fleet.make(environ, progress.on_event, redactor)
    except AotidoctorError as error:
        warn(redactor.text(str(error)))
        raise typer.Exit(error.exit_status) from error
    if show.format is Format.JSON:
        write_stdout("".join(fleet_in(found, "json")))
    else:
        from aotidoctor.reports.fleet.terminal import text  # noqa: PLC0415 - for a terminal only

        write_stdout(text(found.summary, stream=sys.stdout or StringIO(), environ=environ, detail=min(show.detail, 0)))
        place = _shell_path(demo_fleet.folder(environ), environ)
        write_stdout(f"\nThe page, and by hand:\n\n    {place}/{demo_fleet.PAGE}\n    cd {place}\n    aotidoctor fleet")
        write_stdout(f" {demo_fleet.TONIGHT} --baseline {demo_fleet.LAST_NIGHT} --fail-on-new\n")
    raise typer.Exit(OK if demo_fleet.is_as_expected(found) else UNKNOWN)


def _triaged(show: Show, environ: Mapping[str, str], *, cuda: bool) -> Iterator[Seen]:
    """Each patient, or the one for CUDA, with its report; ends after one that could not be examined."""
    # `--help` does not need the stages.
    from aotidoctor.commands import demo, demo_cuda  # noqa: PLC0415

    with demo.warm_runner(environ) as runner:
        for patient in (demo_cuda.PATIENT,) if cuda else demo.PATIENTS:
            triage = demo_cuda.triage if cuda else partial(demo.triage, patient)
            progress = make_progress(sys.stderr, environ, quiet=show.detail < 0)
            report = examined("run", patient.package, partial(triage, runner, environ), progress)
            yield patient, redacted(report, environ) if show.redact else report
            if not _was_examined(report):
                return


def _was_examined(report: Report) -> bool:
    return exit_status(report, "error") in (OK, PROBLEM, UNKNOWN)


def _found(patient: Patient, report: Report) -> bool:
    return bool(report.diagnoses) and report.diagnoses[0].cause == patient.cause


def _status(seen: list[Seen]) -> int:
    """0 when each cause was found, 3 when one was not, else why the last one could not be examined."""
    if not _was_examined(seen[-1][1]):
        return exit_status(seen[-1][1], "error")
    return OK if all(_found(patient, report) for patient, report in seen) else UNKNOWN


def _screen(number: int, patient: Patient, report: Report, environ: Mapping[str, str]) -> str:
    story = textwrap.fill(f"{number}. {patient.title}. {patient.story}", 80, subsequent_indent="   ")
    return f"{story}\n\n{rendered(report, Format.RICH, Show(detail=-1), environ)}\n"


def _as_json(seen: list[Seen]) -> str:
    from aotidoctor.reports.json import render as json_  # noqa: PLC0415

    patients = [
        {"title": patient.title, "story": patient.story, "cause": patient.cause, "report": json_.document(report)}
        for patient, report in seen
    ]
    return json_.dumps({"schema": "aotidoctor.demo/1", "patients": patients})


def _by_hand(seen: list[Seen], environ: Mapping[str, str]) -> str:
    """The commands that repeat each triage; nothing where the files are not there."""
    if not _was_examined(seen[-1][1]):
        return ""
    from aotidoctor.commands import demo, demo_cuda  # noqa: PLC0415

    cuda = seen[-1][0] is demo_cuda.PATIENT
    place = demo_cuda.folder(environ) if cuda else demo.folder(environ)
    words = [demo_cuda.argv()] if cuda else [demo.argv(patient) for patient, _ in seen]
    lines = ["By hand, with everything below the first screen:", "", f"    cd {_shell_path(place, environ)}"]
    return "\n".join([*lines, *(f"    {shlex.join(one)}" for one in words)]) + "\n"


def _shell_path(place: Path, environ: Mapping[str, str]) -> str:
    """``place`` as a shell reads it, without the name of the home folder."""
    home = environ.get("HOME", "")
    if home and place.is_relative_to(home):
        return f"~/{shlex.quote(str(place.relative_to(home)))}"
    return shlex.quote(str(place))
