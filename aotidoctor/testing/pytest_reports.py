"""The fixture ``aotidoctor`` and ``--aoti-report html:DIR``: one file per examined package, and an index of all.

Also with pytest-xdist: its workers write, the main process lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from functools import wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import pytest

from aotidoctor.api import Contract, Report, check, classify, compare, compat, contract, diagnose, inspect
from aotidoctor.files import write_file
from aotidoctor.model.record import record
from aotidoctor.testing.healthy import assert_aoti_healthy, listen, register_report

if TYPE_CHECKING:
    from aotidoctor.api.returned_report import Report


# The fixture.
P = ParamSpec("P")


def _registering(function: Callable[P, Report]) -> Callable[P, Report]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Report:
        return register_report(function(*args, **kwargs))

    return call


class Doctor:
    """``aotidoctor.check(...)`` and the others as in ``import aotidoctor``, and ``assert_aoti_healthy``."""

    Contract = Contract
    Report = Report
    assert_aoti_healthy = staticmethod(assert_aoti_healthy)
    check = staticmethod(_registering(check))
    classify = staticmethod(_registering(classify))
    compare = staticmethod(_registering(compare))
    compat = staticmethod(_registering(compat))
    contract = staticmethod(contract)
    diagnose = staticmethod(_registering(diagnose))
    inspect = staticmethod(_registering(inspect))


# The files and their index.
FORMATS = ("html", "md", "json")
_PROPERTY = "aoti_report"
_MOST = 20
"""Reports of one test that are written; further ones are counted."""


@record
class _IndexRow:
    """A line of the index: the test, the name of its report without suffix, what was found."""

    test: str
    file: str
    package: str
    verdict: str
    cause: str


class ReportWriter:
    """The part of the plugin that is there for the option only. Workers of xdist write; the main process lists."""

    def __init__(self, config: pytest.Config, specs: Sequence[str]) -> None:
        self._places = [_parse_place(config, spec) for spec in specs]
        self._rows: list[_IndexRow] = []
        self._unwritten: list[str] = []
        # Only the main process has no input from one.
        self._lists = not hasattr(config, "workerinput")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Collect what the test examines, in its fixtures and in itself."""
        reports: list[Report] = []
        listen(reports)
        item.stash[_REPORTS] = reports
        try:
            return (yield)
        finally:
            listen(None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write before pytest reports on the call: what is noted there reaches the main process."""
        reports = item.stash.get(_REPORTS, [])
        for number, report in enumerate(reports[:_MOST]):
            self._write(item, report, number)
        if len(reports) > _MOST:
            item.user_properties.append((_PROPERTY, f"{len(reports) - _MOST} further reports are not written"))
        reports.clear()
        return (yield)

    def _write(self, item: pytest.Item, report: Report, number: int) -> None:
        # A name that any file system takes, and that no other test has.
        from hashlib import sha256

        readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.nodeid).strip("-.")[-80:]
        digest = sha256(f"{item.nodeid}\0{number}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{readable}-{digest}"
        writers = {"html": report.to_html, "md": report.to_markdown, "json": report.to_json}
        for kind, folder in self._places:
            path = folder / f"{name}.{kind}"
            try:
                writers[kind](path)
            except OSError as error:
                item.user_properties.append((_PROPERTY, f"{path}: {error.strerror or error}"))
                return
        document = report.to_dict()
        artifact = document.get("artifact")
        package = str(artifact.get("path")) if isinstance(artifact, dict) else ""
        row = {"test": item.nodeid, "file": name, "package": package, "verdict": report.verdict}
        item.user_properties.append((_PROPERTY, {**row, "cause": report.cause or ""}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect in the main process what the workers wrote."""
        if not self._lists:
            return
        for name, value in report.user_properties:
            if name == _PROPERTY and isinstance(value, dict):
                row = _IndexRow(**value)
                if row not in self._rows:
                    self._rows.append(row)
            elif name == _PROPERTY and str(value) not in self._unwritten:
                self._unwritten.append(str(value))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The index, and where it is."""
        if not self._lists:
            return
        for kind, folder in self._places:
            try:
                index = folder / f"index.{kind if kind != 'json' else 'jsonl'}"
                write_file(index, _index(self._rows, kind))
            except OSError as error:
                self._unwritten.append(f"{folder}: {error.strerror or error}")
                continue
            terminalreporter.write_line(f"aotidoctor: {len(self._rows)} reports in {index}")
        for line in self._unwritten:
            terminalreporter.write_line(f"aotidoctor: warning: {line}", yellow=True)


_REPORTS = pytest.StashKey["list[Report]"]()


def _parse_place(config: pytest.Config, spec: str) -> tuple[str, Path]:
    kind, colon, folder = spec.partition(":")
    if kind not in FORMATS or not colon or not folder:
        expected = ", ".join(f"{one}:DIR" for one in FORMATS)
        raise pytest.UsageError(f"--aoti-report: observed {spec!r}, expected one of {expected}")
    return kind, config.invocation_params.dir / folder


def _index(rows: Sequence[_IndexRow], kind: str) -> str:
    from json import dumps

    if kind == "json":
        fields = ("test", "file", "package", "verdict", "cause")
        return "".join(dumps({name: getattr(row, name) for name in fields}) + "\n" for row in rows)
    if kind == "md":
        cells = str.maketrans({"|": "\\|", "[": "\\[", "]": "\\]"})
        lines = [f"| [{row.test.translate(cells)}]({row.file}.md) | {row.verdict} | {row.cause} |" for row in rows]
        return "\n".join(["| test | verdict | cause |", "|---|---|---|", *lines]) + "\n"
    body = "".join(
        f"<tr><td><a href='{row.file}.html'>{escape(row.test)}</a></td><td>{escape(row.package)}</td>"
        f"<td>{escape(row.verdict)}</td><td>{escape(row.cause)}</td></tr>"
        for row in rows
    )
    head = "<tr><th>test</th><th>package</th><th>verdict</th><th>cause</th></tr>"
    title = "AOTInductor packages"
    return (
        f"<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>{title}</title></head>"
        f"<body><h1>{title}</h1><table>{head}{body}</table></body></html>\n"
    )
