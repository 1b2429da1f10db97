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
    first, second = commands(builders.misleading())
    assert first[1] == {"file": "abc.wrapper.cpp", "line": "412", "title": "PROBLEM: input-dtype"}
    assert "What to do: Pass int64." in first[2].splitlines()
    assert second[1]["title"] == "2. index-out-of-range"


def test_one_annotation_per_fault():
    """Not one for each piece of evidence of it, and none for a note."""
    base = builders.misleading()
    source = FileSource(file="config.pbtxt", line=9)
    elsewhere = replace(base.findings[0], id="E8", source=source)
    of_its_own = replace(base.findings[0], id="E9", code="AD-IN-012", subject="x")
    note = replace(base.findings[0], id="E10", severity=Severity.INFO)
    diagnosis = replace(base.diagnoses[0], evidence=(*base.diagnoses[0].evidence, "E8"))
    second = replace(base.diagnoses[0], rank=2, cause="input-rank", evidence=("E9",))
    found = (*base.findings, elsewhere, of_its_own, note)
    titles = [fields["title"] for _, fields, _ in commands(replace(base, findings=found, diagnoses=(diagnosis,)))]
    assert titles == ["PROBLEM: input-dtype", "AD-IN-010 dtype", "AD-IN-012 dtype"]
    titles = [
        fields["title"] for _, fields, _ in commands(replace(base, findings=found, diagnoses=(diagnosis, second)))
    ]
    assert titles == ["PROBLEM: input-dtype", "2. input-rank", "AD-IN-010 dtype"]


def test_a_member_of_the_package_is_no_file_of_the_checkout():
    base = builders.misleading()
    source = FileSource(file=builders.SO.member, line=3)
    finding = replace(base.findings[0], source=source)
    report = replace(base, diagnoses=base.diagnoses[:1], findings=(replace(finding, id="E9"),))
    _, (_, fields, message) = commands(report)
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
    assert {level: levels.count(level) for level in levels} == {"error": 10, "warning": 10, "notice": 2}
    assert found[-1][2] == "and 4 errors, 1 warning more"


def test_output_of_a_child_cannot_be_a_command():
    base = builders.misleading()
    nasty = "x\n::set-env name=PATH::/tmp\r\n::stop-commands::t%0A::add-mask::a\u2028::error::b"
    finding = replace(base.findings[0], observed=nasty, subject=nasty, kind=nasty)
    text = github.render_github(replace(base, diagnoses=base.diagnoses[:1], findings=(finding,)))
    assert all(line.startswith(("::error file=", "::notice ", "::warning ")) for line in text.splitlines())
    assert "%250A" in text
