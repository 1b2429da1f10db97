"""The changelog: its newest release is the version of the package, and its form is that of Keep a Changelog."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from aotidoctor.version import __version__

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASES = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", TEXT, re.MULTILINE)
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_newest_release_is_the_version():
    assert RELEASES[0][0] == __version__


def test_releases_are_in_order_newest_first():
    numbers = [tuple(map(int, number.split("."))) for number, _ in RELEASES]
    dates = [date.fromisoformat(day) for _, day in RELEASES]
    assert numbers == sorted(set(numbers), reverse=True)
    assert dates == sorted(dates, reverse=True)


def test_every_heading_has_a_known_form():
    headings = re.findall(r"^##+ .*$", TEXT, re.MULTILINE)
    known = {"## [Unreleased]", *(f"## [{number}] - {day}" for number, day in RELEASES)}
    known |= {f"### {name}" for name in SECTIONS}
    assert headings[0] == "## [Unreleased]"
    assert [heading for heading in headings if heading not in known] == []


def test_every_change_is_one_line():
    changes = TEXT.split("## [Unreleased]", 1)[1].splitlines()
    assert [line for line in changes if line.strip() and not line.startswith(("- ", "#"))] == []
    assert [line for line in changes if len(line) > 120] == []
