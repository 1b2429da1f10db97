from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from aotidoctor.cli.document_output import Show
from aotidoctor.cli.execute import present_report
from aotidoctor.commands.repro.repro_script import KnownFailure, Repro
from aotidoctor.commands.repro.reproduce import hand_over, outcome_line, outcome_texts, repro, reproduce
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.errors import CannotExamineError, UsageError
from tests.unit.reports import builders

HOST = Host(system="Linux", machine="x86_64", python="3.11")
NOTHING = KnownFailure(signature=None, diagnoses=(), findings=())
MADE = Repro(certified="same signature, aotidoctor2:x", ending="raised", inputs="made up", weights="zeroed")


def case(path, kind=ArtifactKind.AOTI_PACKAGE):
    return Case(artifact=Artifact(path=str(path), kind=kind, size=0), host=HOST)


def test_a_folder_of_other_things_is_not_touched(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="nothing was overwritten"):
        reproduce(case("model.pt2"), NOTHING, tmp_path, {})


@pytest.mark.parametrize(
    ("known", "kind", "why"),
    [
        (NOTHING, ArtifactKind.AOTI_PACKAGE, "there is no failure"),
        (KnownFailure(signature="s", diagnoses=(), findings=(object(),)), ArtifactKind.MISSING, "there is no package"),
        (KnownFailure(signature="s", diagnoses=(), findings=(object(),)), ArtifactKind.BARE_SO, "single-file packages"),
    ],
)
def test_where_there_is_nothing_to_do_nothing_is_tried(tmp_path, known, kind, why):
    made = reproduce(case("model.pt2", kind), known, tmp_path / "out", {})
    assert why in made.problem
    assert made.tried == ()
    assert not (tmp_path / "out").exists()


def test_a_script_that_is_not_certified_is_not_offered():
    failed = Repro(problem="it does not end so", tried=("as it is: no failure",))
    assert outcome_texts(failed, Path("out"))["repro"] == "not certified, not written: it does not end so"
    assert outcome_line(failed, Path("out")).startswith("warning: no repro at out: not certified")
    assert "as it is: no failure" in outcome_line(failed, Path("out"))


def test_a_certified_one_says_what_is_in_it():
    assert outcome_line(MADE, Path("out")) == (
        "out/repro.py, certified: same signature, aotidoctor2:x; inputs made up; weights: zeroed"
    )
    assert outcome_texts(MADE, Path("out"))["repro_weights"] == "zeroed"


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"schema": "other"}), None])
def test_what_is_no_report_cannot_be_started_from(tmp_path, text):
    saved = tmp_path / "report.json"
    if text is not None:
        saved.write_text(text)
    with pytest.raises(CannotExamineError, match="report"):
        repro("model.pt2", None, Options(), tmp_path / "out", saved=str(saved), environ={})


def test_a_log_alone_has_no_package(tmp_path):
    known = KnownFailure(signature="s", diagnoses=(), findings=(object(),))
    made = reproduce(case("", ArtifactKind.OTHER), known, tmp_path / "out", {})
    assert made.problem.startswith("there is no package")


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_leaves_no_half_of_a_script(tmp_path, there):
    room, directory = tmp_path / "room", tmp_path / "out"
    room.mkdir()
    for name in ("repro.py", "model.pt2"):
        (room / name).write_text(name * (1 if name == "repro.py" else 1000))
    if there:
        directory.mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*out/model\.pt2"):
            hand_over(room, directory, replace(MADE, files=("repro.py", "model.pt2")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert directory.exists() is there
    assert list(tmp_path.glob("out/*")) == []


def test_a_folder_of_somebody_is_refused_before_anything_is_diagnosed(tmp_path, monkeypatch):
    (tmp_path / "theirs").write_text("x")
    monkeypatch.setattr("aotidoctor.commands.diagnose_package.diagnose", lambda *_, **__: pytest.fail("diagnosed"))
    with pytest.raises(UsageError, match="not empty"):
        repro("model.pt2", None, Options(), tmp_path, environ={})


def test_a_script_that_cannot_be_written_is_an_examination_that_did_not_end(tmp_path, monkeypatch, capsys):
    full = OSError(28, "No space left on device", str(tmp_path / "out"))
    monkeypatch.setattr("aotidoctor.commands.repro.reproduce.reproduce", Mock(side_effect=full))
    report = builders.misleading()
    monkeypatch.setattr("aotidoctor.commands.diagnose_package.diagnose", Mock(return_value=report))
    noted = repro("model.pt2", None, Options(), tmp_path / "out", environ={})
    assert "No space left" in noted.extra["repro"]
    assert present_report(report, Show(), {}) == 1
    assert present_report(noted, Show(), {}) == 4
    assert present_report(report, Show(extras=(("repro", tmp_path / "out"),)), {}) == 4
    assert "No space left" in capsys.readouterr().err
