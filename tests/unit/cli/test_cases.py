"""``--cases`` and ``aotidoctor cases``."""

from __future__ import annotations

import json

import jsonschema
import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.reports.json.schema import schema

LOG = "RuntimeError: Error(s) in loading: index out of bounds: 0 <= tmp7 < 100L\n"


def call(*words, **more):
    return CliRunner().invoke(build_app(), [*map(str, words)], **more)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "crash.log"
    path.write_text(LOG)
    return path


@pytest.fixture
def store(tmp_path):
    return tmp_path / "desk.sqlite"


def test_nothing_is_kept_by_default(log, tmp_path, monkeypatch):
    monkeypatch.delenv("AOTIDOCTOR_CASES", raising=False)
    assert "history" not in json.loads(call("classify", log, "--json").stdout)
    assert list(tmp_path.iterdir()) == [log]


@pytest.mark.parametrize("by", ["option", "environment"])
def test_the_second_report_knows_of_the_first(log, store, by):
    words = ("classify", log) + (("--cases", store) if by == "option" else ())
    env = {"AOTIDOCTOR_CASES": str(store)} if by == "environment" else {}
    first, second = (call(*words, "--json", env=env) for _ in range(2))
    assert first.exit_code == second.exit_code != 5
    assert "history" not in json.loads(first.stdout)
    document = json.loads(second.stdout)
    jsonschema.validate(document, schema())
    assert (document["history"]["of"], document["history"]["count"]) == ("exact", 1)
    for kind in ("rich", "md", "html"):
        assert "Seen before" in call(*words, "--format", kind, env=env).stdout


def test_a_note_that_solved_it_is_in_the_next_report(log, store):
    call("classify", log, "--cases", store)
    signature = json.loads(call("cases", "--cases", store, "--json").stdout)["cases"][0]["signature"]
    assert (
        call(
            "cases", "note", signature, "cast the ids of /home/alexandra to int64", "--solved", "--cases", store
        ).exit_code
        == 0
    )
    found = json.loads(call("classify", log, "--cases", store, "--json").stdout)["history"]
    assert "int64" in found["solved"]["text"]
    assert "alexandra" not in found["solved"]["text"]
    assert "solved by: cast the ids" in call("classify", log, "--cases", store, "-q").stdout
    shown = call("cases", "show", "1", "--cases", store)
    assert "Solved" in shown.stdout
    assert json.loads(call("cases", "list", "--words", "INT64", "--cases", store, "--json").stdout)["cases"]
    assert not json.loads(call("cases", "list", "--words", "float16", "--cases", store, "--json").stdout)["cases"]


def test_a_store_that_cannot_be_used_changes_no_report_but_the_exit_status(log, store):
    plain = call("classify", log, "--json")
    store.write_text("something else " * 100)
    done = call("classify", log, "--json", "--cases", store)
    assert (plain.exit_code, done.exit_code) == (1, 4)
    assert json.loads(done.stdout)["verdict"] == json.loads(plain.stdout)["verdict"]
    assert "--cases" in done.stderr
    assert store.read_text() == "something else " * 100


@pytest.mark.parametrize("option", ["--cases", "--cache"])
def test_a_file_that_a_batch_was_given_and_cannot_use_is_in_its_exit_status(log, tmp_path, option):
    (tmp_path / "mine").write_text("something else " * 100)
    words = ["batch", log, "-o", tmp_path / "results", "-q", "--fail-on", "never"]
    plain = call(*words, "--no-cache")
    done = call(*words, option, tmp_path / "mine", *(["--no-cache"] if option == "--cases" else []))
    assert (plain.exit_code, done.exit_code) == (0, 4)
    assert str(tmp_path / "mine") in done.stderr
    assert str(tmp_path / "mine") in done.stdout
    assert "not complete" not in done.stdout
    assert "1 item" in done.stdout


def test_a_default_cache_that_cannot_be_used_is_a_note(log, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").write_text("a file")
    done = call("batch", log, "-o", tmp_path / "results", "-q", "--fail-on", "never")
    assert done.exit_code == 0
    assert "the cache" in done.stdout


def test_the_store_is_not_overwritten_by_a_report(log, store):
    call("classify", log, "--cases", store)
    before = store.read_bytes()
    assert call("classify", log, "--cases", store, "--report", f"json:{store}").exit_code == 2
    assert call("cases", "export", "--cases", store, "-o", store).exit_code == 2
    assert store.read_bytes() == before


def test_a_batch_keeps_its_failures_once(log, store, tmp_path):
    (tmp_path / "again.log").write_text(LOG)
    words = ("batch", log, tmp_path / "again.log", "-o", tmp_path / "results", "--no-cache", "-q", "--cases", store)
    for _ in range(2):
        assert call(*words).exit_code in (1, 3)
        found = json.loads(call("cases", "--cases", store, "--json").stdout)["cases"]
        assert [one["count"] for one in found] == [2]


def test_export_import_and_merge(log, store, tmp_path):
    call("classify", log, "--cases", store)
    assert call("cases", "export", "--cases", store, "-o", tmp_path / "cases.json").exit_code == 0
    other = tmp_path / "other.sqlite"
    assert call("cases", "import", tmp_path / "cases.json", "--cases", other).stdout == "1 new sighting, 0 new notes\n"
    assert call("cases", "merge", store, "--cases", other).stdout == "0 new sightings, 0 new notes\n"
    assert call("cases", "export", "--cases", other).stdout == (tmp_path / "cases.json").read_text()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("cases",), 2), (("cases", "--cases", "/no/such"), 4), (("cases", "show", "7", "--cases", "{store}"), 4),
        (("cases", "note", "1", " ", "--cases", "{store}"), 2), (("cases", "import", "/no/such", "--cases", "{store}"), 4),
        (("cases", "merge", "/no/such", "--cases", "{store}"), 4),
    ],
)  # fmt: skip
def test_what_cannot_be_done(log, store, words, status, monkeypatch):
    monkeypatch.delenv("AOTIDOCTOR_CASES", raising=False)
    call("classify", log, "--cases", store)
    done = call(*(word.format(store=store) for word in words))
    assert done.exit_code == status
    assert done.stderr
