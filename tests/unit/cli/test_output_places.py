"""Every command that writes is given a device, a pipe, a link and a folder: none is replaced, no failure is silent."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app, each
from aotidoctor.commands.minimize import RESULT_FILES, STATE_FILE, open_folder
from aotidoctor.commands.repro.reproduce import Repro, hand_over
from aotidoctor.runner.own_command import ExaminedPath

DATA = Path(__file__).parents[2] / "data"
PACKAGE = str(DATA / "releases" / "2.8.0" / "dyn" / "model.pt2")
SAMPLE = str(DATA / "releases" / "2.8.0" / "dyn" / "samples" / "good.pt")
PROGRAM = str(DATA / "releases" / "2.8.0" / "dyn" / "exported.pt2")

# PLACE is where it writes.
FILES = {
    "report": ("check", PACKAGE, "--report", "json:PLACE"),
    "bundle": ("bundle", PACKAGE, "-o", "PLACE"),
    "map": ("bundle", PACKAGE, "-o", "ELSE", "--map", "PLACE"),
    "bundle as a report": ("check", PACKAGE, "--report", "bundle:PLACE"),
    "fix": ("fix", "execstack", PACKAGE, "-o", "PLACE"),
    "stamp": ("stamp", PACKAGE, "--exported", PROGRAM, "-o", "PLACE"),
    "contract": ("contract", PACKAGE, "-o", "PLACE"),
    "env": ("env", "--save", "PLACE"),
    "cases": ("cases", "export", "--cases", "STORE", "-o", "PLACE"),
}
FOLDERS = {
    "batch": ("batch", PACKAGE, "--no-cache", "-o", "PLACE"),
    "repro": ("repro", PACKAGE, "-o", "PLACE"),
    "minimize": ("minimize", PACKAGE, "--reference", PROGRAM, "-i", SAMPLE, "-o", "PLACE"),
    "man": ("man", "-o", "PLACE"),
    "reports": ("check", PACKAGE, "-o", "PLACE"),
}
WRITTEN = {
    "batch": {"fleet.json", "results.jsonl", "reports"},
    "repro": {"repro.py"},
    "minimize": {STATE_FILE, *RESULT_FILES},
    "man": {"aotidoctor.1"},
    "reports": {"report.json", "report.md"},
}
STREAMS = {"report", "contract", "env", "cases"}
NULL, FULL = os.makedev(1, 3), os.makedev(1, 7)


def device(path, number):
    if os.geteuid() != 0:
        pytest.skip("only root makes device nodes")
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, number)
        os.close(os.open(path, os.O_WRONLY))
    except PermissionError:
        pytest.skip("device nodes cannot be made or opened here")


KINDS = {
    "null": lambda path: device(path, NULL),
    "full": lambda path: device(path, FULL),
    "pipe": os.mkfifo,
    "link": lambda path: path.symlink_to(path.parent / "mine"),
    "folder": os.mkdir,
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files of the commands' own go there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def outcome(command, place):
    words = [word.replace("PLACE", str(place)).replace("ELSE", f"{place}-else") for word in command]
    words = [word.replace("STORE", f"{place}-store") for word in words]
    (place.parent / "mine").write_text("mine")
    if "cases" in words:
        line = (
            "RuntimeError: Error in dlopen: libtorch_cuda.so: cannot open shared object file: No such file or directory"
        )
        CliRunner().invoke(build_app(), ["classify", "-", "--cases", f"{place}-store"], input=line)
    before = os.lstat(place)
    result = CliRunner().invoke(build_app(), words)
    after = os.lstat(place)
    assert (before.st_ino, before.st_mode, before.st_rdev) == (after.st_ino, after.st_mode, after.st_rdev)
    assert (place.parent / "mine").read_text() == "mine"
    assert "Traceback" not in result.output
    assert not list(place.parent.glob(".aotidoctor*"))
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", FILES)
def test_what_is_no_file_is_not_replaced_by_one(tmp_path, command, kind):
    KINDS[kind](tmp_path / "place")
    result = outcome(FILES[command], tmp_path / "place")
    if kind == "null" and command in STREAMS:
        assert result.exit_code in (0, 1)
        return
    # The bundle and its map are refused beforehand.
    assert result.exit_code == (2 if command in ("bundle", "map") else 4)
    assert "place" in result.output


@pytest.mark.parametrize("command", sorted(STREAMS))
def test_a_pipe_gets_the_whole_document(tmp_path, command):
    os.mkfifo(tmp_path / "place")
    reader = os.open(tmp_path / "place", os.O_RDONLY | os.O_NONBLOCK)
    assert outcome(FILES[command], tmp_path / "place").exit_code in (0, 1)
    assert os.read(reader, 1 << 20).strip()
    os.close(reader)


@pytest.mark.parametrize("kind", ["null", "pipe"])
@pytest.mark.parametrize("command", FOLDERS)
def test_what_is_no_folder_is_not_replaced_by_one(tmp_path, command, kind):
    KINDS[kind](tmp_path / "place")
    result = outcome(FOLDERS[command], tmp_path / "place")
    assert result.exit_code in (2, 4)
    assert "place" in result.output


@pytest.mark.parametrize("between", ["", "below"])
@pytest.mark.parametrize("command", FOLDERS)
def test_a_link_to_a_folder_that_the_user_names_is_that_folder(tmp_path, command, between):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to("theirs")
    place = tmp_path / "link" / between
    if command == "repro":
        (tmp_path / "repro.py").write_text("")
        hand_over(tmp_path, place, Repro(files=("repro.py",)))
    elif command == "minimize":
        for name in RESULT_FILES:
            (tmp_path / name).write_text("")
        open_folder(place, "key").answer(["relu"], failed=True, room=tmp_path)
        open_folder(place, "key")
    else:
        words = [word.replace("PLACE", str(place)) for word in FOLDERS[command]]
        assert CliRunner().invoke(build_app(), words).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert WRITTEN[command] <= {path.name for path in (tmp_path / "theirs" / between).iterdir()}


@pytest.mark.parametrize("name", ["report.json", "report.md"])
def test_reports_are_not_written_through_links_in_their_folder(tmp_path, name):
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / name).symlink_to(tmp_path / "mine")
    result = outcome(FOLDERS["reports"], tmp_path / "place")
    assert result.exit_code == 4
    assert name in result.stderr


def test_results_of_each_are_not_written_through_a_link_in_its_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "batch").symlink_to(tmp_path)
    monkeypatch.setattr(each, "run_each", lambda words, path: pytest.fail("it ran"))
    assert each.main(["batch", PACKAGE, "--reports", str(tmp_path / "place")]) == 4
    assert "symbolic link" in capsys.readouterr().err


@pytest.mark.parametrize("name", [f"{kind}.1" for kind in ("aotidoctor", "aotidoctor-check")])
def test_pages_are_not_written_through_links(tmp_path, name):
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / name).symlink_to(tmp_path / "mine")
    assert outcome(FOLDERS["man"], tmp_path / "place").exit_code == 4


READ = {
    "weights": ("check", PACKAGE, "--weights", "PLACE"),
    "cases": ("cases", "import", "PLACE", "--cases", "STORE"),
    "accepted": ("fleet", "RESULTS", "--accepted", "PLACE"),
    "dynamic shapes": ("verify", PROGRAM, "--dynamic-shapes", "PLACE"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", READ)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path, command):
    os.mkfifo(tmp_path / "place")
    results = tmp_path / "results"
    if command == "accepted":
        CliRunner().invoke(build_app(), ["batch", PACKAGE, "--no-cache", "-o", str(results)])
    words = [str(results) if word == "RESULTS" else word for word in READ[command]]
    result = outcome(words, tmp_path / "place")
    assert result.exit_code in (2, 4)
    assert "it is a pipe" in result.output


@pytest.mark.timeout(60)
def test_a_log_that_is_no_file_is_not_waited_for_and_one_that_is_not_there_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.log")
    words = ["bundle", PACKAGE, "-o", str(tmp_path / "sent.zip"), "--log"]
    refused = CliRunner().invoke(build_app(), [*words, str(tmp_path / "pipes.log")])
    assert refused.exit_code == 4
    assert f"did you mean {tmp_path / 'pipe.log'}?" in refused.stderr
    assert not (tmp_path / "sent.zip").exists()
    made = CliRunner().invoke(build_app(), [*words, str(tmp_path / "pipe.log")])
    assert "it is a pipe" in made.stdout


@pytest.mark.parametrize(("kind", "status"), [("null", 0), ("full", 4), ("pipe", 4), ("link", 4), ("folder", 4)])
def test_a_summary_of_each_is_added_to_files_only(tmp_path, kind, status, monkeypatch, capsys):
    KINDS[kind](tmp_path / "place")
    before = os.lstat(tmp_path / "place")
    monkeypatch.setattr(each, "run_each", lambda words, path: ExaminedPath(path=path, status=0, output="fine"))
    assert each.main(["check", PACKAGE, "--summary", str(tmp_path / "place")]) == status
    after = os.lstat(tmp_path / "place")
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert not (tmp_path / "mine").exists()
    assert ("place" in capsys.readouterr().err) == bool(status)


def test_a_summary_of_each_comes_after_what_the_file_has(tmp_path, monkeypatch):
    (tmp_path / "place").write_text("before\n")
    monkeypatch.setattr(each, "run_each", lambda words, path: ExaminedPath(path=path, status=0, output="fine"))
    for _ in range(2):
        assert each.main(["check", PACKAGE, "--summary", str(tmp_path / "place")]) == 0
    text = (tmp_path / "place").read_text()
    assert text.startswith("before\n### aotidoctor")
    assert text.count("### aotidoctor") == 2
