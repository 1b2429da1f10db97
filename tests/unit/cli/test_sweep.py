"""The command that sweeps: what cannot be meant, what it writes, and its exit status. No process."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.cli.document_output import FailOn, write_formats
from aotidoctor.cli.prevent_commands import SweepFormat, _render_sweep, _sweep_status
from aotidoctor.model.fleet import Does, Says, Sweep, SweepRow, SweepVerdict


def call(*words):
    return CliRunner().invoke(build_app(), ["sweep", *map(str, words)])


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "--format", "md"),
        ("--report", "page.html"),
        ("--report", "html:"),
        ("--report", "rich:page"),
        ("--report", "json:m.pt2"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pt2").write_text("no package")
    assert call("m.pt2", *words).exit_code == 2
    assert (tmp_path / "m.pt2").read_text() == "no package"


def test_what_cannot_be_read_is_told(tmp_path):
    done = call(tmp_path / "absent", "--json")
    assert done.exit_code == 4
    told = json.loads(done.stdout)
    assert (told["schema"], "no such file" in told["cannot_examine"]) == ("aotidoctor.sweep/1", True)


def found(judged=SweepVerdict.FINE):
    row = SweepRow(
        axis="dtype", subject="args[0]", change="float64", says=Says.ACCEPTS, package=Does.RIGHT, program=Does.RIGHT,
        judged=judged,
    )  # fmt: skip
    return Sweep(package="m.pt2", reference=None, rows=(row,), planned=1, unasked=(), seconds=1.0)


WORST_FIRST = (SweepVerdict.FAULT, SweepVerdict.UNGUARDED, SweepVerdict.REFUSED)


@pytest.mark.parametrize(
    ("fail_on", "failing"), [(FailOn.ERROR, 1), (FailOn.WARN, 2), (FailOn.INFO, 3), (FailOn.NEVER, 0)]
)
def test_the_exit_status(fail_on, failing):
    for judged in SweepVerdict:
        assert _sweep_status(found(judged), fail_on) == int(judged in WORST_FIRST[:failing]), judged


def test_every_form_is_written_and_shown(tmp_path, capsys):
    files = [(kind, tmp_path / kind.value) for kind in (SweepFormat.JSON, SweepFormat.MD, SweepFormat.HTML)]
    write_formats(lambda kind: _render_sweep(found(), kind, 1), SweepFormat.RICH, files)
    assert "args[0]" in capsys.readouterr().out
    assert json.loads((tmp_path / "json").read_text())["rows"][0]["subject"] == "args[0]"
    assert "| args" in (tmp_path / "md").read_text().replace("`", "")
    assert (tmp_path / "html").read_text().lower().startswith("<!doctype html>")


def test_a_report_that_cannot_be_written_is_told(tmp_path, capsys):
    (tmp_path / "file").touch()
    files = [(SweepFormat.JSON, tmp_path / "file" / "x.json")]
    with pytest.raises(typer.Exit) as ended:
        write_formats(lambda kind: _render_sweep(found(), kind, 0), SweepFormat.RICH, files)
    assert ended.value.exit_code == 4
    assert f"could not write {tmp_path / 'file' / 'x.json'}: Not a directory" in capsys.readouterr().err
