"""The command that writes a stamp, where it cannot; what it writes is for the end-to-end tests."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from aotidoctor.cli import build_app

PACKAGE = Path(__file__).parents[2] / "data" / "releases" / "2.12.1" / "custop" / "model.pt2"


def call(*words):
    return CliRunner().invoke(build_app(), ["stamp", *map(str, words)])


def test_what_cannot_be_meant_is_a_usage_error(tmp_path):
    assert call(PACKAGE, "-o", tmp_path / "x").exit_code == 2
    assert call(PACKAGE, "--reference", PACKAGE, "-o", PACKAGE).exit_code == 2


def test_what_cannot_be_read_is_told(tmp_path):
    done = call(PACKAGE, "--reference", tmp_path / "absent", "-o", tmp_path / "x", "--json")
    assert done.exit_code == 4
    told = json.loads(done.stdout)
    assert (told["schema"], bool(told["cannot_examine"])) == ("aotidoctor.stamped/1", True)
    assert call(tmp_path / "absent", "--reference", PACKAGE, "-o", tmp_path / "x").exit_code == 4
    assert not (tmp_path / "x").exists()
