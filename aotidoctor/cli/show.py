"""What the user wants to see, and where it goes: one document on stdout, further ones into files."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

import typer

from aotidoctor.cli.extras import EXTRAS
from aotidoctor.cli.formats import FORMATS, Wanted
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.bounded import bounded
from aotidoctor.reports.text import neutral
from aotidoctor.reports.write import write_file


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
    """Least severity that makes the exit status 1."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"
    NEVER = "never"


# Formats of --report: what a file can hold. `rich` depends on the terminal, so it is not one of them.
_FILE_FORMATS = (Format.JSON, Format.MD, Format.HTML, Format.SARIF, Format.JUNIT, Format.GITHUB)
# What --output-dir writes: a report to read and one to keep.
_DIRECTORY_FORMATS = (Format.JSON, Format.MD)


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


def page_format(format_: PageFormat | None, *, json: bool) -> PageFormat:
    """The format of a page. Raises BadParameter."""
    if json and format_ not in (None, PageFormat.JSON):
        raise typer.BadParameter("--json and another --format cannot be combined", param_hint="--json")
    return PageFormat.JSON if json else format_ or PageFormat.RICH


def make_show(
    *,
    format_: Format | None,
    json: bool,
    report: Sequence[str] | None = None,
    output_dir: str | None = None,
    quiet: bool = False,
    verbose: int = 0,
    fail_on: FailOn = FailOn.ERROR,
    redact: bool = True,
    form: IssueForm = IssueForm.GENERIC,
    plugins: bool = True,
    protected: Sequence[str | None] = (),
) -> Show:
    """The output options as one value; ``protected`` are files that must not be overwritten. Raises BadParameter."""
    if json and format_ not in (None, Format.JSON):
        raise typer.BadParameter("--json and another --format cannot be combined", param_hint="--json")
    specs = [_spec(text, plugins=plugins) for text in report or ()]
    files = [(Format(kind), path) for kind, path in specs if kind in _FILE_FORMATS]
    extras = tuple((kind, path) for kind, path in specs if kind not in _FILE_FORMATS)
    if output_dir is not None:
        files += [(kind, Path(output_dir) / f"report.{kind.value}") for kind in _DIRECTORY_FORMATS]
    taken = {os.path.realpath(path) for path in protected if path}
    for _, path in (*files, *extras):
        if os.path.realpath(path) in taken:
            raise typer.BadParameter(f"{path} is what is examined; it is not overwritten", param_hint="--report")
    chosen = Format.JSON if json else format_ or Format.RICH
    if form is not IssueForm.GENERIC and Format.MD not in (chosen, *(kind for kind, _ in files)):
        raise typer.BadParameter(
            "--for needs Markdown output: --format md, --report md:PATH or -o DIR", param_hint="--for"
        )
    return Show(
        format=chosen,
        files=tuple(files),
        extras=extras,
        detail=-1 if quiet else min(verbose, 2),
        fail_on=fail_on,
        redact=redact,
        form=form,
        plugins=plugins,
    )


def _spec(text: str, *, plugins: bool) -> tuple[str, Path]:
    """The kind of report and its path: a format of a file, a key of ``EXTRAS``, or a format of a plugin."""
    name, colon, path = text.partition(":")
    known = [*(kind.value for kind in _FILE_FORMATS), *EXTRAS]
    if plugins and name not in known:
        from aotidoctor.plugins.discover import found  # noqa: PLC0415 - for a name that is none of ours

        known += [entry.name for entry in found() if entry.group == "reports"]
    if not colon or not path or name not in known:
        hint = f"{text!r} is not FMT:PATH; formats of a file: {', '.join(known)}"
        raise typer.BadParameter(hint, param_hint="--report")
    return name, Path(path)


def rendered(report: Report, kind: Format, show: Show, environ: Mapping[str, str]) -> str:
    """``report`` in a format, of a bounded size."""
    repro = next((str(path) for name, path in show.extras if name == "repro"), None)
    wanted = Wanted(fail_on=show.fail_on.value, form=show.form.value, repro=repro, detail=show.detail, environ=environ)
    return bounded(report, lambda short: FORMATS[kind.value](short, wanted))


@record
class Documents:
    """What is printed, and what goes into files."""

    stdout: str
    files: tuple[tuple[Path, str], ...]


def documents(report: Report, show: Show, environ: Mapping[str, str]) -> Documents:
    """``report`` in all formats that are asked for."""
    return Documents(
        stdout=rendered(report, show.format, show, environ),
        files=tuple((path, rendered(report, kind, show, environ)) for kind, path in show.files),
    )


def emit(made: Documents) -> None:
    """Print the document and write the files. A file that cannot be written is a warning: the result is on stdout."""
    write_stdout(made.stdout)
    for path, text in made.files:
        write_report(path, text)


def write_report(path: Path, text: str) -> None:
    """Write the file; where that fails, say so."""
    try:
        write_file(path, text)
    except OSError as error:
        warn(f"could not write {path}: {error.strerror or error}")


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


def warn(message: str) -> None:
    """One line on stderr."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"aotidoctor: warning: {neutral(message)}\n")
        sys.stderr.flush()
