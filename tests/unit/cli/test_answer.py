"""Commands that make something other than a report: a failure of our own is exit status 5, never the model's 1."""

from __future__ import annotations

import importlib
import json

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app

CALLS = {
    "fix": ("aotidoctor.commands.stamp_and_fix", "fix", ("fix", "execstack", "m.pt2", "-o", "x.pt2")),
    "stamp": (
        "aotidoctor.commands.stamp_and_fix",
        "stamp_package",
        ("stamp", "m.pt2", "--reference", "e", "-o", "x.pt2"),
    ),
    "sweep": ("aotidoctor.commands.sweep.run_sweep", "sweep", ("sweep", "m.pt2")),
    "map": ("aotidoctor.commands.map.draw_map", "draw_map", ("map", "m.pt2")),
    "minimize": ("aotidoctor.commands.minimize", "minimize", ("minimize", "m.pt2", "-i", "x.pt", "--reference", "e")),
}


def broken(*_given, **_named):
    raise ZeroDivisionError("a private word")


@pytest.mark.parametrize("name", CALLS)
def test_our_own_failure_is_one_document_and_status_5(name, monkeypatch, tmp_path):
    module, function, words = CALLS[name]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.import_module(module), function, broken)
    done = CliRunner().invoke(build_app(), [*words, "--json"])
    assert done.exit_code == 5
    told = json.loads(done.stdout)
    assert told["schema"].startswith("aotidoctor.")
    assert "ZeroDivisionError at test_answer.py:" in told["internal_error"]
    assert "private" not in done.output
    assert "aotidoctor failed here" in done.stderr


def test_without_a_document_it_is_one_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.import_module("aotidoctor.commands.contract.emit"), "emit", broken)
    done = CliRunner().invoke(build_app(), ["contract", "m.pt2"])
    assert (done.exit_code, done.stdout) == (5, "")
    assert "aotidoctor failed here: ZeroDivisionError" in done.stderr
    assert "private" not in done.output
