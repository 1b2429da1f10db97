from __future__ import annotations

import re
from dataclasses import replace

import pytest

from aotidoctor.model.evidence import Evidence, FileSource, Severity
from aotidoctor.reports import github
from tests.unit.reports import builders

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def commands(report):
    found = []
    for line in github.render_github(report).splitlines():
        match = COMMAND.fullmatch(line)
        assert match, line
        fields = dict(part.split("=", 1) for part in match[2].split(","))
        found.append((match[1], {name: decoded(value) for name, value in fields.items()}, decoded(match[3])))
    return found


def decoded(text):
    """As the runner does it."""
    for code, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, letter)
    return text


def many(count, severity, **more):
    one = Evidence(code="AD-IN-010", kind="k", severity=severity, subject="s", observed="o", expected="e", **more)
    return (one,) * count


@pytest.mark.parametrize("name", [*builders.GOLDEN, "hostile"])
def test_every_line_is_a_command_and_the_verdict_is_first(name):
    report = builders.hostile() if name == "hostile" else builders.GOLDEN[name]()
    found = commands(report)
    assert found
    for _, fields, message in found:
        assert set(fields) <= {"file", "line", "col", "title"}
        assert message
    level = {"healthy": "notice", "inspected": "notice", "environment": "notice", "unknown": "warning"}
    assert found[0][0] == level.get(name, "error")


def test_place_title_and_message():
    first, second, third = commands(builders.misleading())
    assert first[1] == {"file": "abc.wrapper.cpp", "line": "412", "title": "PROBLEM: input-dtype"}
    assert "What to do: Pass int64." in first[2].splitlines()
    assert second[1]["title"] == "AD-IN-010 dtype"
    assert third[1] == {"file": "model.pt2", "title": "AD-RUN-001 raised"}
    assert "[R1 stderr:1]" in third[2]


def test_a_member_of_the_package_is_no_file_of_the_checkout():
    base = builders.misleading()
    source = FileSource(file=builders.SO.member, line=3)
    finding = replace(base.findings[0], source=source)
    _, (_, fields, message), *_ = commands(replace(base, findings=(finding,)))
    assert fields["file"] == "model.pt2"
    assert "line" not in fields
    assert f"[{builders.SO.member}:3]" in message


def test_line_and_column_of_a_config():
    source = FileSource(file="models/a,b:c/config.pbtxt", line=7, column=3)
    report = replace(builders.healthy(), findings=many(1, Severity.WARN, source=source))
    fields = commands(report)[1][1]
    assert fields == {"file": "models/a,b:c/config.pbtxt", "line": "7", "col": "3", "title": "AD-IN-010 k"}


def test_ten_of_a_level_are_shown_and_the_rest_is_counted():
    report = replace(
        builders.healthy(), findings=many(14, Severity.ERROR) + many(11, Severity.WARN) + many(30, Severity.INFO)
    )
    found = commands(report)
    levels = [level for level, _, _ in found]
    assert {level: levels.count(level) for level in levels} == {"error": 10, "warning": 10, "notice": 10}
    assert found[-1][2] == "and 4 errors, 1 warning, 22 notices more"


def test_output_of_a_child_cannot_be_a_command():
    base = builders.misleading()
    nasty = "x\n::set-env name=PATH::/tmp\r\n::stop-commands::t%0A::add-mask::a\u2028::error::b"
    finding = replace(base.findings[0], observed=nasty, subject=nasty, kind=nasty)
    text = github.render_github(replace(base, findings=(finding,)))
    assert all(line.startswith(("::error file=", "::notice ", "::warning ")) for line in text.splitlines())
    assert "%250A" in text
