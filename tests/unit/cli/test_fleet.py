"""``aotidoctor fleet``: options in, document and exit status out."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from tests.optional import optional
from tests.unit.fleet.fleets import failing, healthy, mixed, unexamined, write

optional("pandas", reason="pandas is not installed (pip install 'aotidoctor[fleet]')")


def call(*words):
    return CliRunner().invoke(build_app(), ["fleet", *map(str, words)])


@pytest.fixture
def folders(tmp_path):
    return write(tmp_path / "old", mixed()[:42]), write(tmp_path / "now", mixed())


def test_a_view_alone_is_no_failure(folders):
    done = call(folders[1], "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["failing"] == 13


@pytest.mark.parametrize(
    ("old", "now", "status"),
    [
        ([healthy("a")], [healthy("a")], 0),
        ([failing("a", "x")], [failing("a", "x")], 0),
        ([healthy("a")], [failing("a", "x")], 1),
        ([healthy("a")], [unexamined("a")], 4),
        ([healthy("a"), healthy("b")], [failing("a", "x"), unexamined("b")], 1),
    ],
)
@pytest.mark.parametrize("kind", ["rich", "json", "csv", "html", "sarif", "junit", "md", "chat"])
def test_the_exit_status_is_that_of_what_is_new(tmp_path, old, now, status, kind):
    base, results = write(tmp_path / "old", old), write(tmp_path / "now", now)
    done = call(results, "--baseline", base, "--fail-on-new", "--format", kind)
    assert done.exit_code == status
    assert done.stdout


def test_what_may_hide_something_is_not_quiet(tmp_path):
    base = write(tmp_path / "old", [healthy("a"), healthy("b")])
    unfinished = write(tmp_path / "unfinished", [healthy("a")], finished="")
    damaged = write(tmp_path / "damaged", [healthy("a")])
    with (tmp_path / "damaged" / "results.jsonl").open("a") as stream:
        stream.write("{\n")
    whole = write(tmp_path / "whole", [healthy("a")])
    for folder, status in ((unfinished, 4), (damaged, 4), (whole, 0)):
        assert call(folder, "--baseline", base, "--fail-on-new", "-q").exit_code == status


def test_an_accepted_list_keeps_it_quiet(tmp_path, folders):
    path = tmp_path / "accepted.toml"
    path.write_text(
        "".join(
            f"[[accept]]\ncause = '{one}'\nreason = 'known'\nuntil = 2999-01-01\n"
            for one in ("input-stride", "weights-not-loaded")
        )
    )
    words = (folders[1], "--baseline", folders[0], "--fail-on-new", "--json")
    assert call(*words).exit_code == 1
    done = call(*words, "--accepted", path)
    assert done.exit_code == 0
    assert all(one["is_accepted"] for one in json.loads(done.stdout)["clusters"])


def test_a_command_is_called_for_each_new_cluster(tmp_path, folders):
    hook = tmp_path / "hook.py"
    hook.write_text(f"import sys\nopen({str(tmp_path / 'log')!r}, 'a').write(sys.stdin.read() + '\\0')\nprint('said')")
    command = [
        sys.executable,
        "-m",
        "aotidoctor",
        "fleet",
        folders[1],
        "--baseline",
        folders[0],
        "--json",
        "--on-new",
        f"{sys.executable} {hook}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    documents = [json.loads(one) for one in (tmp_path / "log").read_text().split("\0") if one]
    assert [one["cluster"]["cause"] for one in documents] == ["input-stride", "weights-not-loaded"]
    assert json.loads(done.stdout)["news"] == [one["cluster"]["key"] for one in documents]  # one document on stdout
    assert done.stderr.count("said") == 2


def test_a_command_that_fails_is_a_warning(folders):
    done = call(folders[1], "--baseline", folders[0], "-q", "--on-new", "/no/such/command")
    assert done.exit_code == 0
    assert "No such file" in done.stderr


def test_further_reports(tmp_path, folders):
    done = call(
        folders[1], "--report", f"html:{tmp_path / 'x' / 'fleet.html'}", "--report", f"csv:{tmp_path / 'fleet.csv'}"
    )
    assert done.exit_code == 0
    assert (tmp_path / "x" / "fleet.html").read_text().startswith("<!DOCTYPE html>")
    assert len((tmp_path / "fleet.csv").read_text().splitlines()) == 56


@pytest.mark.parametrize(
    "words",
    [
        ("--fail-on-new",), ("--on-new", "x"), ("--json", "--format", "md"), ("--report", "rich:x"), ("--report", "csv"),
        ("--report", "json:{now}/results.jsonl"), ("--report", "json:{now}/../now/fleet.json"),
        ("--baseline", "{now}", "--on-new", "'"), ("--accepted", "/no/such"),
    ],
)  # fmt: skip
def test_usage_errors(folders, words):
    lines = Path(folders[1], "results.jsonl")
    before = lines.read_text()
    done = call(folders[1], *(word.format(now=folders[1]) for word in words))
    assert done.exit_code == 2
    assert lines.read_text() == before


@pytest.mark.parametrize("words", [("/no/such",), ("{now}", "--baseline", "/no/such")])
def test_what_cannot_be_read(folders, words):
    done = call(*(word.format(now=folders[1]) for word in words), "--json")
    assert done.exit_code == 4
    assert "/no/such" in json.loads(done.stdout)["cannot_examine"]


def test_without_pandas_it_says_what_to_install(folders):
    code = "import sys; sys.modules['pandas'] = None; from aotidoctor.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "fleet", folders[1]], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 4
    assert "pip install 'aotidoctor[fleet]'" in done.stderr


def test_a_module_of_ours_that_cannot_be_imported_is_not_told_as_a_lack_of_pandas(folders):
    code = (
        "import sys; sys.modules['aotidoctor.fleet.summary.table'] = None; from aotidoctor.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "fleet", folders[1]], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 5
    assert "pip install" not in done.stderr + done.stdout


def test_names_of_this_machine_are_hidden(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert str(tmp_path) not in call(folders[1], "--json").stdout
    assert str(tmp_path) in call(folders[1], "--json", "--no-redact").stdout


TOKEN = "ghp_" + "a1" * 18


@pytest.mark.parametrize("kind", ["csv", "html", "json", "junit", "md", "sarif"])
def test_labels_of_results_that_were_not_redacted_are_redacted_here(tmp_path, kind, monkeypatch):
    monkeypatch.setenv("HOME", "/home/zaphod")
    monkeypatch.setenv("USER", "zaphod")
    results = write(tmp_path / "now", [replace(failing("a", "x"), labels={"team": f"zaphod {TOKEN}"}), healthy("b")])
    assert TOKEN not in call(results, "--format", kind).stdout
    assert "zaphod" not in call(results, "--format", kind).stdout
    if kind in ("csv", "html"):
        assert TOKEN in call(results, "--format", kind, "--no-redact").stdout
