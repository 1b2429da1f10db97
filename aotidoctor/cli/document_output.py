"""Write documents to stdout and into files: formats, chosen output, extras of ``--report``, error documents.

A format is a folder or file of ``reports/`` whose ``render`` takes a report; what it needs beside the report (the
manual's pages, the checks that were run, the width of a terminal) is handed to it here. Only the chosen format is
imported: rich alone doubles the start-up time.

An extra (``repro:DIR``, ``bundle:FILE``) begins when the report is written. It is a function of the unredacted
report; the folder or file to write; the environment; and whether its output is redacted. It returns one line for
stderr. A document or extra that was asked for and cannot be written ends the command with exit status 4.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import StringIO, TextIOWrapper
from pathlib import Path
from threading import Timer
from typing import TypeVar

import typer

from aotidoctor.files import write_file
from aotidoctor.interruption import held, interruptible, requested_signal
from aotidoctor.model.errors import (
    CANNOT_EXAMINE,
    INTERNAL_ERROR,
    AotidoctorError,
    CannotExamineError,
    LimitReachedError,
    UsageError,
)
from aotidoctor.model.evidence import FAILED_HERE, whereabouts
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.text import limit_report, neutral
from aotidoctor.version import __version__

# Formats of a report by name.
# Commands that ask every static check, and what starts the codes of those that one asks some of.
_ALL, _ARTIFACT = frozenset(("run", "check", "localize", "compare", "analyze")), "AD-ART"


def _names_by_code(report: Report) -> dict[str, str]:
    """Code and name of the checks or rules that were asked; none of a report that stands in for one."""
    if report.interrupted or "from" in report.extra:
        return {}
    if not report.findings and not report.not_checked and report.verdict != "healthy":
        return {}
    # The stages have been imported by then.
    if report.command == "triton" and report.extra.get("release") and report.names is None:
        from aotidoctor.triton.rules import RULES

        return {rule.code: rule.title for rule in RULES}
    if report.command not in _ALL and report.command != "inspect":
        return {}
    from aotidoctor.checks.registry import CHECKS

    return {check.code: check.name for check in CHECKS if report.command in _ALL or check.code.startswith(_ARTIFACT)}


# One document on stdout, further ones into files.
F = TypeVar("F", bound=enum.Enum)


class Format(str, enum.Enum):
    """Formats of stdout."""

    RICH = "rich"
    MD = "md"
    JSON = "json"
    HTML = "html"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


class PageFormat(str, enum.Enum):
    """Formats of what is no report: a page of the manual, a difference."""

    RICH = "rich"
    MD = "md"
    JSON = "json"


class ValuesForm(str, enum.Enum):
    """What a report has of values."""

    STATISTICS = "statistics"
    HASH = "hash"


class WeightProtocol(str, enum.Enum):
    """How other weights take the place of those that are loaded."""

    DOUBLE_BUFFER = "double-buffer"
    USER_MANAGED = "user-managed"


class EmulateWhen(str, enum.Enum):
    """When a CUDA package is carried out on the CPU."""

    ALWAYS = "always"
    AUTO = "auto"
    NEVER = "never"


class IssueForm(str, enum.Enum):
    """Issue forms that Markdown can fill."""

    GENERIC = "generic"
    PYTORCH = "pytorch"
    TRITON = "triton"


class FailOn(str, enum.Enum):
    """Lowest severity for exit status 1."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"
    NEVER = "never"


@record
class Show:
    """The output options.

    ``detail`` is -1 (quiet), 0, 1 or 2. ``files`` are the further reports to write, ``extras`` what is made besides.
    ``form`` is the issue form that Markdown fills. ``cases`` is the store that the report is kept in, None: nowhere.
    """

    format: Format = Format.RICH
    files: tuple[tuple[Format, Path], ...] = ()
    extras: tuple[tuple[str, Path], ...] = ()
    detail: int = 0
    fail_on: FailOn = FailOn.ERROR
    redact: bool = True
    form: IssueForm = IssueForm.GENERIC
    plugins: bool = True
    cases: str | None = None


def chosen_format(given: F | None, default: F, *, json: bool) -> F:
    """The format of stdout: as given, or ``default``. Raises BadParameter."""
    as_json = type(default)("json")
    if json and given not in (None, as_json):
        raise typer.BadParameter("--json and another --format cannot be combined", param_hint="--json")
    return as_json if json else given or default


def page_format(given: PageFormat | None, *, json: bool) -> PageFormat:
    """The format of a page. Raises BadParameter."""
    return chosen_format(given, PageFormat.RICH, json=json)


def render_report(report: Report, kind: Format, show: Show, environ: Mapping[str, str]) -> str:
    """``report`` in a format, of a bounded size."""
    return limit_report(report, lambda short: _render(short, kind, show, environ))


def _render(report: Report, kind: Format, show: Show, environ: Mapping[str, str]) -> str:
    match kind:
        case Format.RICH:
            from aotidoctor.reports.terminal.terminal_report import terminal_text

            return terminal_text(report, stream=sys.stdout or StringIO(), environ=environ, detail=show.detail)
        case Format.MD if show.form is not IssueForm.GENERIC:
            from aotidoctor.reports.issue import render_issue

            repro = next((str(path) for name, path in show.extras if name == "repro"), None)
            return render_issue(report, show.form.value, repro)
        case Format.MD:
            from aotidoctor.reports.markdown import render_markdown

            return render_markdown(report)
        case Format.JSON:
            from aotidoctor.reports.json.json_report import render_json

            return render_json(report)
        case Format.HTML:
            from aotidoctor.reports.html.html_report import render_html

            return render_html(report)
        case Format.SARIF:
            from aotidoctor.commands.explain import name_and_text
            from aotidoctor.reports.sarif import render_sarif

            return render_sarif(report, show.fail_on.value, name_and_text)
        case Format.JUNIT:
            from aotidoctor.reports.junit import render_junit

            return render_junit(report, show.fail_on.value, _names_by_code(report))
        case Format.GITHUB:
            from aotidoctor.reports.github import render_github

            return render_github(report)


def render_documents(report: Report, show: Show, environ: Mapping[str, str]) -> list[tuple[Path | None, str]]:
    """Render ``report`` in all requested formats, each with the file that it goes to; None is stdout."""
    wanted = ((None, show.format), *((path, kind) for kind, path in show.files))
    return [(path, render_report(report, kind, show, environ)) for path, kind in wanted]


def write_documents(made: Sequence[tuple[Path | None, str]]) -> bool:
    """Print the document and write the files; whether all of them were written."""
    written = [_print(text) if path is None else write_report(path, text) for path, text in made]
    return all(written)


def write_formats(render: Callable[[F], str], chosen: F, files: Sequence[tuple[F, Path]]) -> None:
    """Print what ``render`` makes of the format ``chosen``, and write the files in theirs. Raises Exit if one fails."""
    if not write_documents([(path, render(kind)) for kind, path in ((chosen, None), *files)]):
        raise typer.Exit(CANNOT_EXAMINE)


def write_report(path: str | Path, text: str) -> bool:
    """Write the file; where that fails, say so and return False."""
    try:
        write_file(path, text)
    except OSError as error:
        warn(f"could not write {path}: {error.strerror or error}")
        return False
    return True


def write_output(path: str | Path, text: str) -> None:
    """Write the file that is the result of the command. Raises Exit where that is not possible."""
    if not write_report(path, text):
        raise typer.Exit(CANNOT_EXAMINE)


def write_stdout(text: str) -> None:
    """Print ``text``. Raises Exit where that is not possible."""
    if not _print(text):
        raise typer.Exit(CANNOT_EXAMINE)


def _print(text: str) -> bool:
    """Print; say so and return False where stdout is closed or full. A reader that went away has what it wanted.

    No request to end the process cuts the text in half.
    """
    _written.append(len(text))
    try:
        with held():
            _stdout().flush()
            left = text.encode("utf-8", "replace")
            # With PYTHONUNBUFFERED a signal ends a write, and what it wrote is a part.
            while isinstance(written := _stdout().buffer.write(left), int) and written:
                left = left[written:]
            if left:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            _stdout().buffer.flush()
    except OSError as error:
        gone = isinstance(error, BrokenPipeError)
        if not gone:
            warn(f"could not write to stdout: {error.strerror or error}")
        # Python flushes stdout once more at its end, and would turn the same error into exit status 120.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return gone
    return True


# The lengths of what was written to stdout.
_written: list[int] = []


def has_written() -> bool:
    """Whether stdout has got anything."""
    return bool(_written)


def _stdout() -> TextIOWrapper:
    """``sys.stdout``, which is None in a process that was started without one. Raises OSError then."""
    if isinstance(sys.stdout, TextIOWrapper):
        return sys.stdout
    raise OSError(errno.EBADF, os.strerror(errno.EBADF))


@contextlib.contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn errors in the block into a warning on stderr and an exit status. Raises BadParameter."""
    try:
        yield
    except UsageError as error:
        raise typer.BadParameter(neutral(str(error))) from error
    except AotidoctorError as error:
        warn(str(error))
        raise typer.Exit(error.exit_status) from error


def warn(message: str) -> None:
    """One line on stderr."""
    write_stderr(f"aotidoctor: warning: {neutral(message)}\n")


def write_stderr(text: str) -> None:
    """Write to stderr at once; do nothing if it is closed."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


# So long a user waits for nothing that he can see.
PATIENCE_S = 5.0


@contextmanager
def notice_wait(text: str) -> Iterator[None]:
    """Say on stderr, once, what is done, where the block takes longer than that: it goes on as long as it takes."""
    timer = Timer(PATIENCE_S, lambda: write_stderr(f"aotidoctor: {neutral(text)}; Ctrl+C stops\n"))
    timer.daemon = True
    # WebAssembly has no threads.
    with contextlib.suppress(RuntimeError):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            # A process with one thread ends at once.
            timer.join(1)


# Extras of `--report`.
Extra = Callable[[Report, Path, Mapping[str, str], bool], str]
"""Raises OSError or AotidoctorError where nothing could be written."""


def _bundle(report: Report, path: Path, environ: Mapping[str, str], redact: bool) -> str:
    from aotidoctor.commands.bundle.make_bundle import deliver_report

    return deliver_report(report, path, environ, redact=redact)


def _repro(report: Report, path: Path, environ: Mapping[str, str], redact: bool) -> str:
    # For --report repro: only.
    from aotidoctor.commands.repro.reproduce import outcome_line, repro_of_report

    return outcome_line(repro_of_report(report, path, environ, redact=redact), path)


def _plugin(name: str, report: Report, path: Path, environ: Mapping[str, str], redact: bool) -> str:
    """In the format of a plugin, which gets the report as it is shown."""
    from aotidoctor.plugins.proxies import render_with
    from aotidoctor.reports.redact.redactor import redact_private
    from aotidoctor.runner.own_command import PluginError

    redacted = redact_private(report, environ) if redact else report
    try:
        write_file(path, render_with(name, redacted))
    except PluginError as error:
        raise CannotExamineError(f"the plugin failed: {error}") from error
    return f"{name} written to {path}"


EXTRAS: Mapping[str, Extra] = {"bundle": _bundle, "repro": _repro}


def write_extras(
    report: Report, extras: Sequence[tuple[str, Path]], environ: Mapping[str, str], *, redact: bool
) -> bool:
    """Make each of ``extras``, pairs of a key of ``EXTRAS`` and a path, and say on stderr what became of it.

    Returns whether all of them were written.
    """
    written = True
    for kind, path in extras:
        if requested_signal() is not None:
            write_stderr(f"aotidoctor: warning: no {kind} at {path}: interrupted\n")
            continue
        try:
            with interruptible():
                made = EXTRAS.get(kind, partial(_plugin, kind))(report, path, environ, redact)
        except KeyboardInterrupt:
            made = f"warning: no {kind} at {path}: interrupted"
        except (OSError, AotidoctorError) as error:
            made, written = f"warning: no {kind} at {path}: {error}", False
        except Exception as error:  # noqa: BLE001 - the document is out: a traceback would be one of the whole command
            made, written = f"warning: no {kind} at {path}: {FAILED_HERE}: {whereabouts(error)}", False
        write_stderr(f"aotidoctor: {neutral(made)}\n")
    return written


# Commands whose result is no report: one JSON document, one line for an error.
def json_document(schema: str, body: Mapping[str, object]) -> str:
    """``body`` as a document of ``schema`` that says which tool wrote it."""
    from aotidoctor.reports.json.json_report import dump_json

    return dump_json({"schema": schema, "tool": {"name": "aotidoctor", "version": __version__}, **body})


@contextmanager
def exit_with_error(
    write_error: Callable[[str, str], None], clean: Callable[[str], str] = lambda text: text
) -> Iterator[None]:
    """Turn errors in the block into an exit status; ``write_error`` gets the name of the field and the message.

    So does a failure of our own, with 5: a traceback would end it with 1, which says that the model has a problem.
    """

    def fail(field: str, message: str, status: int, prefix: str = "") -> typer.Exit:
        write_error(field, message)
        warn(f"{prefix}{message}")
        return typer.Exit(status)

    try:
        yield
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except LimitReachedError as reached:
        raise fail("out_of_time", str(reached), 6) from reached
    except AotidoctorError as error:
        raise fail("cannot_examine", clean(str(error)), error.exit_status) from error
    except (typer.Exit, typer.BadParameter):
        raise
    except Exception as error:
        raise fail("internal_error", clean(whereabouts(error)), INTERNAL_ERROR, f"{FAILED_HERE}: ") from error


def exit_with_error_document(schema: str | None, package: str, *, redact: bool = False) -> AbstractContextManager[None]:
    """Turn errors in the block into an exit status, and a document about ``package`` where ``schema`` is given."""

    def clean(text: str) -> str:
        from aotidoctor.reports.redact.redactor import Redactor

        return Redactor.of(os.environ).text(text) if redact else text

    def write_error(field: str, message: str) -> None:
        if schema is not None:
            write_stdout(json_document(schema, {"package": clean(package), field: message}))

    return exit_with_error(write_error, clean)
