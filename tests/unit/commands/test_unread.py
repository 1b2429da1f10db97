"""A package whose wrapper holds a statement that no rule knows: every command that reads it says what may be missing."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import jsonschema
import pytest

from aotidoctor.commands.diagnose_package import diagnose, inspect
from aotidoctor.model.case import Options
from aotidoctor.reports import markdown
from aotidoctor.reports.html import html_report as html
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.json.schema import schema
from aotidoctor.reports.terminal import terminal_report as terminal
from tests.artifacts.machines import with_every_vector_unit

DYN = Path(__file__).parents[2] / "data" / "releases" / "2.10.0" / "dyn"
KNOWN = "if (8 != arg2_1_size[2]) {"
NEW = "if (not_equal(8, arg2_1_size[2])) {"


@pytest.fixture(autouse=True)
def where_it_was_compiled(monkeypatch):
    with_every_vector_unit(monkeypatch)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A real package in which one comparison is written in another way."""
    path = tmp_path_factory.mktemp("unread") / "model.pt2"
    with zipfile.ZipFile(DYN / "model.pt2") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".wrapper.cpp"):
                assert data.count(KNOWN.encode()) == 1
                data = data.replace(KNOWN.encode(), NEW.encode())
            new.writestr(name, data)
    return str(path)


def test_inspect_names_the_statement_and_the_checks_that_needed_it(package):
    report = inspect(package, Options(), environ={})
    (unread,) = report.case.contract.unread
    assert (unread.part, unread.fact, unread.count, unread.example) == ("checks", "input-check", 1, NEW)
    assert {"input_shape", "input_rank", "input_range"} <= {item.name for item in report.not_checked}
    assert f"line {unread.line}: {NEW}" in " ".join(terminal.plain_terminal_text(report).split())
    document = json.loads(json_.render_json(report))
    assert document["contract"]["unread"][0]["example"] == NEW
    jsonschema.Draft202012Validator(schema()).validate(document)


@pytest.mark.parametrize(
    "render", [terminal.plain_terminal_text, markdown.render_markdown, html.render_html, json_.render_json]
)
def test_a_healthy_call_is_not_called_checked_in_full(package, render):
    report = diagnose(package, str(DYN / "samples" / "good.pt"), Options(), environ={}, static_only=True)
    assert [one.cause for one in report.diagnoses] == []
    missed = {item.name: item.reason for item in report.not_checked if not item.moot}
    assert "not_equal" in missed["input_shape"]
    assert "1 statement of the wrapper could not be read" in " ".join(render(report).split())


def test_what_was_read_still_finds_the_fault(package):
    report = diagnose(package, str(DYN / "samples" / "f64.pt"), Options(), environ={}, static_only=True)
    assert [diagnosis.cause for diagnosis in report.diagnoses][:1] == ["input-dtype"]


def test_the_package_as_it_was_compiled_leaves_nothing_open():
    report = inspect(str(DYN / "model.pt2"), Options(), environ={})
    assert report.case.contract.unread == ()
    assert not [item for item in report.not_checked if "of the wrapper" in item.reason]
