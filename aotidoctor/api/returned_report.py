"""The report that the library returns: the record of the commands, with ways to show and save it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar, cast

from aotidoctor.api.live_arguments import without_file
from aotidoctor.model import report as records
from aotidoctor.model.errors import (
    CANNOT_EXAMINE,
    INTERNAL_ERROR,
    OK,
    PROBLEM,
    UNKNOWN,
    AotidoctorError,
    CannotExamineError,
)
from aotidoctor.reports.text import exit_status

if TYPE_CHECKING:
    from aotidoctor.api.option_arguments import PathLike
    from aotidoctor.model.record import JsonObject

T = TypeVar("T")


class ProblemFoundError(AotidoctorError):
    """``Report.raise_for_problem()``: a problem was found, or a failure whose cause is unknown.

    ``cause`` is its slug, None where it is unknown; ``report`` is the whole ``aotidoctor.Report``.
    """

    exit_status = PROBLEM

    def __init__(self, message: str, cause: str | None, report: Report) -> None:
        super().__init__(message)
        self.cause = cause
        self.report = report

    def __reduce__(self) -> tuple[type[ProblemFoundError], tuple[str, str | None, Report]]:
        """Arguments for unpickling in another process of the caller's."""
        return type(self), (str(self), self.cause, self.report)


class Report(records.Report):
    """What was found.

    ``verdict`` is ``healthy``, ``problem`` or ``unknown``; ``cause`` the slug of the first cause, None where there is
    none. ``diagnoses`` are the causes, best first, each with ``cause``, ``subject``, ``status``, ``confidence`` in
    0..1, ``remedy`` and the ids of its evidence; ``findings`` are what was seen, ``runs`` the child processes,
    ``not_checked`` what was not looked at and why. What is shown or written is redacted unless ``redact=False``.
    It can be pickled and holds none of the caller's tensors.

    >>> report = aotidoctor.check("model.pt2", "int32_ids.pt")
    >>> report.verdict, report.cause, report.diagnoses[0].subject
    ('problem', 'input-dtype', "kwargs['ids']")
    """

    __slots__ = ()

    @property
    def cause(self) -> str | None:
        """The slug of the first cause, such as ``input-dtype``; None where none is named.

        >>> aotidoctor.check("model.pt2", "good.pt").cause is None
        True
        """
        return self.diagnoses[0].cause if self.diagnoses else None

    def show(self, detail: int = 0, *, redact: bool = True, file: TextIO | None = None) -> None:
        """Print it as ``aotidoctor`` prints it to ``file``, by default ``sys.stdout``.

        ``detail`` is -1 (the verdict only), 0, 1 or 2.

        >>> aotidoctor.check("model.pt2", "good.pt").show(-1)
         HEALTHY  nothing wrong found; nothing was run
         model.pt2 (aoti-package, ... bytes)
        """
        stream = file if file is not None else sys.stdout
        stream.write(self._text(stream, detail, redact=redact, environ=os.environ))
        stream.flush()

    def to_text(self, detail: int = 0, *, redact: bool = True) -> str:
        """What ``show`` prints, without colours.

        >>> "input-dtype" in aotidoctor.check("model.pt2", "int32_ids.pt").to_text(-1)
        True
        """
        return self._text(StringIO(), detail, redact=redact, environ={})

    def to_html(self, path: PathLike | None = None, *, redact: bool = True) -> str:
        """The report as one page that loads nothing; written to ``path`` if that is given. Raises OSError.

        >>> page = aotidoctor.check("model.pt2", "int32_ids.pt").to_html("report.html")
        >>> "input-dtype" in page
        True
        """
        from aotidoctor.reports.html.html_report import render_html

        return _write_text(render_html(self._redacted(redact=redact)), path)

    def to_markdown(self, path: PathLike | None = None, *, redact: bool = True) -> str:
        """The report as Markdown that fits an issue; written to ``path`` if that is given. Raises OSError.

        >>> aotidoctor.check("model.pt2", "int32_ids.pt").to_markdown().startswith("## PROBLEM: input-dtype")
        True
        """
        from aotidoctor.reports.markdown import render_markdown

        return _write_text(render_markdown(self._redacted(redact=redact)), path)

    def to_json(self, path: PathLike | None = None, *, redact: bool = True) -> str:
        """The JSON document ``aotidoctor.report/1`` as text; written to ``path`` if that is given. Raises OSError.

        >>> import json
        >>> json.loads(aotidoctor.check("model.pt2", "good.pt").to_json("report.json"))["verdict"]
        'healthy'
        """
        from aotidoctor.reports.json.json_report import render_json

        return _write_text(render_json(self._redacted(redact=redact)), path)

    def to_dict(self, *, redact: bool = True) -> JsonObject:
        """The JSON document ``aotidoctor.report/1`` as plain values; ``aotidoctor schema`` prints its schema.

        >>> aotidoctor.check("model.pt2", "int32_ids.pt").to_dict()["diagnoses"][0]["cause"]
        'input-dtype'
        """
        return cast("JsonObject", json.loads(self.to_json(redact=redact)))

    def raise_for_problem(self, fail_on: str = "error") -> Report:
        """Raise where the command line would not end with status 0; else the report itself.

        ``fail_on`` is the least severity that counts: ``info``, ``warn``, ``error`` or ``never``.

        Raises:
            ProblemFoundError: a problem was found, or a failure whose cause is unknown.
            CannotExamineError: there was nothing to examine, or the time ran out before it was examined.
            AotidoctorError: aotidoctor itself failed.

        >>> aotidoctor.check("model.pt2", "good.pt").raise_for_problem().verdict
        'healthy'
        >>> aotidoctor.check("model.pt2", "int32_ids.pt").raise_for_problem()
        Traceback (most recent call last):
        aotidoctor.api.returned_report.ProblemFoundError: PROBLEM  input-dtype: kwargs['ids'] is int32; ...
        """
        status = exit_status(self, fail_on)
        if status == OK:
            return self
        text = self.to_text(-1).strip()
        if status in (PROBLEM, UNKNOWN):
            raise ProblemFoundError(text, self.cause, self)
        if status == INTERNAL_ERROR:
            raise AotidoctorError(text)
        if status == CANNOT_EXAMINE:
            raise CannotExamineError(text)
        raise CannotExamineError(f"the examination is not complete: {text}")

    def __repr__(self) -> str:
        """Verdict, cause and subject on one line."""
        about = f" in {self.diagnoses[0].subject}" if self.diagnoses and self.diagnoses[0].subject else ""
        return f"<aotidoctor.Report {self.verdict}{f': {self.cause}' if self.cause else ''}{about}>"

    def _repr_html_(self) -> str:
        from aotidoctor.reports.html.html_report import report_piece

        return report_piece(self._redacted(redact=True))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        shown = self._redacted(redact=True)
        return {"text/plain": shown.to_text(redact=False), "text/html": self._repr_html_()}

    def _text(self, stream: TextIO, detail: int, *, redact: bool, environ: Mapping[str, str]) -> str:
        from aotidoctor.reports.terminal.terminal_report import terminal_text

        return terminal_text(self._redacted(redact=redact), stream=stream, environ=environ, detail=detail)

    def _redacted(self, *, redact: bool) -> Report:
        from aotidoctor.reports.redact.redactor import redact_private

        return redact_private(self, os.environ) if redact else self


def public_report(found: records.Report) -> Report:
    """The record of a command as the library's, without what only this process has.

    Raises:
        KeyboardInterrupt: the caller's user ended it; in a program that is the program's to decide on.
    """
    if found.interrupted:
        raise KeyboardInterrupt
    case, inputs = found.case, found.case.inputs
    if inputs is not None:
        gone = inputs.form == "live"
        kept = inputs.without_elements()
        case = replace(case, inputs=without_file(kept) if gone else kept)
    values = {item.name: getattr(found, item.name) for item in fields(found)}
    return Report(**{**values, "case": case})


def _write_text(text: str, path: PathLike | None) -> str:
    if path is not None:
        from aotidoctor.files import write_file

        write_file(Path(path), text)
    return text
