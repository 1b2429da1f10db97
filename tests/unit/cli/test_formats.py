"""The registry of formats holds what the folder of reports and the command line have."""

from __future__ import annotations

from pathlib import Path

from aotidoctor import reports
from aotidoctor.cli.formats import FORMATS
from aotidoctor.cli.show import Format

FOLDER = Path(reports.__file__).parent
# Names on the command line that differ from the module's; the issue form is a kind of Markdown.
MODULES = {"rich": "terminal", "md": "markdown"}


def test_the_command_line_offers_them_all():
    assert {kind.value for kind in Format} == set(FORMATS)


def test_each_is_a_module_that_renders_and_each_such_module_is_one():
    renders = {path.stem for path in FOLDER.glob("*.py") if "\ndef render(" in path.read_text()}
    renders |= {path.parent.name for path in FOLDER.glob("*/render.py")}
    assert {MODULES.get(name, name) for name in FORMATS} | {"issue"} == renders
