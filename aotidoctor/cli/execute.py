"""From a command's work to its document and exit status, whatever happens on the way.

stdout gets exactly one document also when aotidoctor itself fails: the guard turns what was raised into a report.
"""

from __future__ import annotations

import os
import platform
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timezone
from typing import NoReturn

import typer

from aotidoctor.api.plugging import plugins
from aotidoctor.cli.extras import write_extras
from aotidoctor.cli.limits import limited, report_limited
from aotidoctor.cli.progress import Progress, make_progress
from aotidoctor.cli.show import Show, documents, emit, warn
from aotidoctor.cli.urls import finished, shown_words
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.errors import AotidoctorError, LimitReachedError, UsageError
from aotidoctor.model.event import OnEvent
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.fault import whereabouts
from aotidoctor.model.host import Host
from aotidoctor.model.report import Report
from aotidoctor.reports.redact import redacted
from aotidoctor.reports.status import exit_status
from aotidoctor.reports.text import neutral
from aotidoctor.triage import limit
from aotidoctor.version import __version__

Work = Callable[[OnEvent], Report]


def argv() -> tuple[str, ...]:
    """The command as it was given; a report states it."""
    return shown_words(sys.argv)


def execute(command: str, path: str, show: Show, work: Work, *, static: bool = False) -> NoReturn:
    """Do the work, show its report, end with its exit status. ``path`` is what is examined (empty: nothing).

    ``static``: nothing is run, so CPU time and memory are limited by what there is to read.
    """
    environ = os.environ
    progress = make_progress(sys.stderr, environ, quiet=show.detail < 0)
    with plugins(command, wanted=show.plugins):
        with limited() if static else nullcontext():
            report = examined(command, path, work, progress)
        status = present(report, show, environ, static=static)
    raise typer.Exit(status)


def examined(command: str, path: str, work: Work, progress: Progress) -> Report:
    """The report of ``work``, or one that says what went wrong. A usage error ends the process with status 2."""
    try:
        with progress:
            return finished(work(progress.on_event))
    except UsageError as error:
        raise typer.BadParameter(neutral(str(error))) from error
    except KeyboardInterrupt:
        return replace(stand_in(command, path), interrupted=True)
    except LimitReachedError as reached:
        return left_out(stand_in(command, path), command, str(reached))
    except Exception as error:  # noqa: BLE001 - the guard of the whole program: its own failure is a report, too
        if isinstance(error, AotidoctorError) and error.exit_status == 4:
            return replace(stand_in(command, path), cannot_examine=str(error))
        return replace(stand_in(command, path), internal_error=traceback.format_exc())


def present(report: Report, show: Show, environ: Mapping[str, str], *, static: bool = False) -> int:
    """Redact, print, write; returns the exit status."""
    report = kept(report, show.cases, environ)
    try:
        with report_limited() if static else nullcontext():
            shown = redacted(report, environ) if show.redact else report
            made = documents(shown, show, environ)
        emit(made)
    except LimitReachedError as reached:
        report = left_out(stand_in(report.command, ""), "report", str(reached))
        emit(documents(report, show, environ))
    except Exception as error:  # noqa: BLE001 - a report that cannot be shown must still end in one document
        note = f"{whereabouts(error)} while showing the report"
        report = replace(stand_in(report.command, ""), internal_error=note)
        emit(documents(report, show, environ))
    else:
        write_extras(report, show.extras, environ, redact=show.redact)
    return exit_status(report, show.fail_on.value)


def kept(report: Report, store: str | None, environ: Mapping[str, str]) -> Report:
    """``report`` with what ``store`` knew of its failure, in which it is kept; what goes wrong there is a warning."""
    if store is None:
        return report
    from aotidoctor.commands.cases.remember import remember  # noqa: PLC0415 - with --cases only

    try:
        return remember(store, report, environ)
    except AotidoctorError as error:
        warn(f"--cases: {error}")
    except Exception as error:  # noqa: BLE001 - the report stands whatever becomes of the store
        warn(f"--cases: {whereabouts(error)}")
    return report


def left_out(report: Report, name: str, reason: str) -> Report:
    """``report`` with what a limit left out."""
    return replace(report, out_of_time=True, not_checked=(NotChecked(code=limit.CODE, name=name, reason=reason),))


def stand_in(command: str, path: str) -> Report:
    """What can be said when there is no result: nothing about the package, the bare minimum about the host."""
    host = Host(system=platform.system(), machine=platform.machine(), python=platform.python_version())
    artifact = Artifact(path=path, kind=ArtifactKind.UNREADABLE, size=0, problem="not examined")
    return Report(
        verdict="unknown",
        stage=None,
        case=Case(artifact=artifact, host=host),
        diagnoses=(),
        findings=(),
        not_checked=(),
        runs=(),
        argv=argv(),
        command=command,
        version=__version__,
        started=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=0.0,
    )
