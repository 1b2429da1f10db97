"""What the user wants to see, and where it goes: one document on stdout, further ones into files."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TypeVar

import typer

from aotidoctor.cli.formats import FORMATS, Wanted
from aotidoctor.model.errors import AotidoctorError, UsageError
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.bounded import bounded
from aotidoctor.reports.text import neutral
from aotidoctor.reports.write import write_file

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


class EmulateWhen(str, enum.Enum):
    """When a CUDA package is carried out on the CPU."""

    ALWAYS = "always"
    AUTO = "auto"
    NEVER = "never"


class IssueForm(str, enum.Enum):
    """Whose form Markdown fills."""

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


def rendered(report: Report, kind: Format, show: Show, environ: Mapping[str, str]) -> str:
    """``report`` in a format, of a bounded size."""
    repro = next((str(path) for name, path in show.extras if name == "repro"), None)
    wanted = Wanted(fail_on=show.fail_on.value, form=show.form.value, repro=repro, detail=show.detail, environ=environ)
    return bounded(report, lambda short: FORMATS[kind.value](short, wanted))


def documents(report: Report, show: Show, environ: Mapping[str, str]) -> list[tuple[Path | None, str]]:
    """``report`` in all formats that are asked for, each with the file that it goes to; None is stdout."""
    wanted = ((None, show.format), *((path, kind) for kind, path in show.files))
    return [(path, rendered(report, kind, show, environ)) for path, kind in wanted]


def emit(made: Sequence[tuple[Path | None, str]]) -> None:
    """Print the document and write the files. A file that cannot be written is a warning: the result is on stdout."""
    for path, text in made:
        if path is None:
            write_stdout(text)
        else:
            write_report(path, text)


def write_report(path: Path, text: str) -> None:
    """Write the file; where that fails, say so."""
    try:
        write_file(path, text)
    except OSError as error:
        warn(f"could not write {path}: {error.strerror or error}")


def write_output(path: str | Path, text: str) -> None:
    """Write the file that ``--output`` names. Raises BadParameter."""
    try:
        write_file(Path(path), text)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror or error}", param_hint="--output") from error


def write_stdout(text: str) -> None:
    """Write ``text``; a closed stdout, a reader that has gone away or a full disk is a warning, never a traceback."""
    try:
        _stdout().flush()
        _stdout().buffer.write(text.encode("utf-8", "replace"))
        _stdout().buffer.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            warn(f"could not write to stdout: {error.strerror or error}")
        # Python flushes stdout once more at its end, and would turn the same error into exit status 120.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stdout() -> TextIOWrapper:
    """``sys.stdout``, which is None in a process that was started without one. Raises OSError then."""
    if isinstance(sys.stdout, TextIOWrapper):
        return sys.stdout
    raise OSError(errno.EBADF, os.strerror(errno.EBADF))


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Within: what cannot be examined is told on stderr, and ends the command with its status. Raises BadParameter."""
    try:
        yield
    except UsageError as error:
        raise typer.BadParameter(neutral(str(error))) from error
    except AotidoctorError as error:
        warn(str(error))
        raise typer.Exit(error.exit_status) from error


def warn(message: str) -> None:
    """One line on stderr."""
    say(f"aotidoctor: warning: {neutral(message)}\n")


def say(text: str) -> None:
    """Write to stderr at once; where nobody reads it, nothing is written."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()
