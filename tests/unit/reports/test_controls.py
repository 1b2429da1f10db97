"""No text of a stranger moves a cursor: every control character through every field of a report, in every format."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

from rich.console import Console

from aotidoctor.reports import github, issue, junit, markdown, sarif
from aotidoctor.reports.html import html_report as html
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.terminal import terminal_report as terminal
from tests.every import every
from tests.unit.reports import builders

CONTROLS = (
    "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
    + "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
)
# What moves the cursor, colours, sets the title, asks the terminal, turns the direction of writing.
PAYLOAD = f"\x1b[2J\x1b]0;owned\x07\x9b31m{CONTROLS}\x1b[6n"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
# Closed sets: a report with another word is no report.
_FIXED = {"verdict", "stage", "status", "code", "command", "started", "playbook", "cause", "id", "evidence", "version"}
FORMATS = {
    "json": json_.render_json,
    "md": markdown.render_markdown,
    "rich": lambda report: terminal.plain_terminal_text(report, detail=2),
    "html": html.render_html,
    "sarif": sarif.render_sarif,
    "junit": junit.render_junit,
    "github": github.render_github,
    "pytorch": lambda report: issue.render_issue(report, "pytorch"),
    "triton": lambda report: issue.render_issue(report, "triton"),
}


def _poisoned(value, name=""):
    """``value`` with the payload at the end of every text in it."""
    if isinstance(value, enum.Enum) or name in _FIXED:
        return value
    if isinstance(value, str):
        return value + PAYLOAD
    if isinstance(value, Mapping):
        return {key: _poisoned(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_poisoned(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        changes = {one.name: _poisoned(getattr(value, one.name), one.name) for one in fields(value) if one.init}
        return replace(value, **changes)
    return value


@every("name", builders.GOLDEN)
@every("kind", FORMATS)
def test_no_control_character_is_shown(kind, name):
    text = FORMATS[kind](_poisoned(builders.GOLDEN[name]()))
    assert OBEYED.search(text) is None, ascii(text[max(OBEYED.search(text).start() - 80, 0) :][:120])


def test_the_payload_reaches_the_report():
    """Else the test above would be true of a format that shows nothing."""
    text = json_.render_json(_poisoned(builders.GOLDEN["bad_inputs"]()))
    assert text.count(r"\u001b[2J") > 50


@every("character", CONTROLS)
def test_json_means_what_it_meant(character):
    document = json_.dump_json({"key": f"a{character}b"})
    assert json.loads(document) == {"key": f"a{character}b"}
    assert OBEYED.search(document) is None


def test_colours_of_the_report_itself_stay():
    console = Console(width=80, force_terminal=True, color_system="standard", _environ={})
    with console.capture() as captured:
        terminal.render_terminal(builders.GOLDEN["bad_inputs"](), console)
    assert "\x1b[" in captured.get()
