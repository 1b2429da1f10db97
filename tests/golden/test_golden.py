"""One report per verdict and format. ``AOTIDOCTOR_UPDATE_GOLDEN=1 pytest tests/golden`` writes them anew."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from aotidoctor.reports import github, issue, junit, markdown, sarif
from aotidoctor.reports.html import html_report as html_
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.json.schema import schema
from aotidoctor.reports.terminal import terminal_report as terminal
from tests.unit.reports import builders

HERE = Path(__file__).parent


def _html(report):
    """The page without its style sheet, which would be the same in each of them."""
    style = (files("aotidoctor.reports") / "templates" / "report.css").read_text(encoding="utf-8").rstrip("\n")
    page = html_.render_html(report)
    assert page.count(style) == 1
    return page.replace(style, "/* report.css */")


FORMATS = {
    "json": json_.render_json,
    "md": markdown.render_markdown,
    "txt": terminal.plain_terminal_text,
    "html": _html,
    "sarif": sarif.render_sarif,
    "junit.xml": junit.render_junit,
    "github": github.render_github,
    "pytorch.md": lambda report: issue.render_issue(report, "pytorch"),
    "triton.md": lambda report: issue.render_issue(report, "triton"),
}


@pytest.mark.parametrize("name", builders.GOLDEN)
@pytest.mark.parametrize("suffix", FORMATS)
def test_golden(name, suffix):
    text = FORMATS[suffix](builders.GOLDEN[name]())
    path = HERE / f"{name}.{suffix}"
    if os.environ.get("AOTIDOCTOR_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(HERE.glob("*.json")), ids=lambda path: path.stem)
def test_golden_json_keeps_the_schema(path):
    jsonschema.Draft202012Validator(schema()).validate(json.loads(path.read_text(encoding="utf-8")))


def test_no_golden_file_is_left_over():
    known = {f"{name}.{suffix}" for name in builders.GOLDEN for suffix in FORMATS}
    assert {path.name for path in HERE.iterdir() if path.is_file() and path.suffix != ".py"} == known
