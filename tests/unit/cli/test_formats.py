"""The formats are what the folder of reports and the command line have."""

from __future__ import annotations

import os
import re
from pathlib import Path

from aotidoctor import reports
from aotidoctor.cli.document_output import Format, Show, render_report
from tests.unit.reports import builders

FOLDER = Path(reports.__file__).parent
# Names on the command line that differ from the module's; the issue form is a kind of Markdown.
MODULES = {"rich": "terminal", "md": "markdown"}


def test_each_that_the_command_line_offers_names_the_model():
    found = {kind: render_report(builders.misleading(), kind, Show(), os.environ) for kind in Format}
    assert all("model.pt2" in text for text in found.values())
    assert len(set(found.values())) == len(Format)


def test_each_has_a_module_that_renders_reports_and_each_such_module_is_one():
    """A format is a module, or a folder: ``render_NAME(report)``."""
    renders = re.compile(r"^def render_(\w+)\(\s*report: Report\b", re.MULTILINE)
    found = [name for path in FOLDER.rglob("*.py") for name in renders.findall(path.read_text())]
    assert sorted(found) == sorted({MODULES.get(kind.value, kind.value) for kind in Format} | {"issue"})
