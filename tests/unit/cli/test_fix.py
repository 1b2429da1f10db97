"""The command that writes a repaired copy."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from aotidoctor.cli import build_app

PACKAGE = Path(__file__).parents[2] / "data" / "releases" / "2.12.1" / "custop" / "model.pt2"


def call(*words):
    return CliRunner().invoke(build_app(), ["fix", *map(str, words)])


def test_the_copy_and_what_was_changed(tmp_path):
    before = PACKAGE.read_bytes()
    done = call("execstack", PACKAGE, "-o", tmp_path / "fixed.pt2", "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert told["schema"] == "aotidoctor.fix/1"
    assert told["changes"]
    assert PACKAGE.read_bytes() == before
    again = call("execstack", tmp_path / "fixed.pt2", "-o", tmp_path / "same.pt2", "--json")
    assert json.loads(again.stdout)["changes"] == []
    assert (tmp_path / "same.pt2").read_bytes() == (tmp_path / "fixed.pt2").read_bytes()


def test_what_cannot_be_meant_is_a_usage_error(tmp_path):
    copy = tmp_path / "m.pt2"
    copy.write_bytes(PACKAGE.read_bytes())
    assert call("execstack", copy, "-o", copy).exit_code == 2
    assert call("everything", copy, "-o", tmp_path / "x").exit_code == 2
    assert copy.read_bytes() == PACKAGE.read_bytes()


def test_what_cannot_be_read_or_written_is_told(tmp_path):
    assert call("execstack", tmp_path / "absent", "-o", tmp_path / "x").exit_code == 4
    failed = call("execstack", PACKAGE, "-o", tmp_path / "no" / "folder", "--json")
    assert failed.exit_code == 4
    assert json.loads(failed.stdout)["cannot_examine"]
