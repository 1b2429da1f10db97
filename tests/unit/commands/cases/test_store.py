"""The store of cases: what it keeps, finds and exchanges, for several processes, and of what it is handed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from aotidoctor.commands.cases.case_store import CaseQuery, open_store
from aotidoctor.commands.cases.remember import (
    case_of_report,
    case_of_result,
    export_text,
    import_file,
    merge,
    remember,
    remember_results,
    strict_redactor,
)
from aotidoctor.commands.cases.store_file import VERSION
from aotidoctor.model.case import CaseNote, CaseRecord, SeenBefore, Sighting
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.reports.page import report_view
from tests.unit.fleet.fleets import failing, healthy, write
from tests.unit.reports import builders

A, B, FAMILY = "aotidoctor2:" + "a" * 16, "aotidoctor2:" + "b" * 16, "aotidoctor2f:" + "f" * 16


def record(signature=A, at="2026-09-03T10:00:00Z", *, notes=(), subject="args[0]", **more):
    key = f"{abs(hash((signature, at, subject))):032x}"[-32:]
    seen = Sighting(key=key, at=at, command="run", subject=subject, host_class="x86_64 avx2", status="confirmed")
    given = {"family": FAMILY, "cause": "input-stride", "title": "wrong strides", **more}
    return CaseRecord(signature=signature, sightings=(seen,), notes=notes, **given)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "desk.sqlite")


@pytest.fixture
def store(path):
    with open_store(path, make=True) as opened:
        yield opened


def test_a_case_is_one_signature_seen_many_times(store):
    store.add([record(at=f"2026-09-0{day}T10:00:00Z") for day in (3, 5, 4)])
    store.add([record(B)])
    found = store.find(CaseQuery())
    assert [(one.signature, one.count, one.first_seen[:10], one.last_seen[:10]) for one in found] == [
        (A, 3, "2026-09-03", "2026-09-05"), (B, 1, "2026-09-03", "2026-09-03"),
    ]  # fmt: skip


def test_the_same_sighting_is_kept_once(store):
    assert store.add([record(), record()]) == (1, 0)
    assert store.add([record()]) == (0, 0)


def test_history_is_of_the_exact_failure_else_of_its_family(store):
    assert store.history(A, FAMILY) is None
    store.add([record(B), record(B, at="2026-09-07T10:00:00Z")])
    of_family = store.history(A, FAMILY)
    assert (of_family.of, of_family.count, of_family.since, of_family.last) == (
        "family",
        2,
        "2026-09-03T10:00:00Z",
        "2026-09-07T10:00:00Z",
    )
    store.add([record(A)])
    assert (store.history(A, FAMILY).of, store.history(A, FAMILY).count) == ("exact", 1)
    assert store.history(A, FAMILY).host_class == "x86_64 avx2"
    assert store.history("aotidoctor2:" + "0" * 16, "") is None


def test_the_latest_solution_is_told(store):
    notes = (
        CaseNote(text="looked at it", at="2026-10-09T10:00:00Z"), CaseNote(text="old way", at="2026-10-01T10:00:00Z", solved=True),
        CaseNote(text="contiguous()", at="2026-10-05T10:00:00Z", solved=True),
    )  # fmt: skip
    store.add([record(notes=notes)])
    history = store.history(A, FAMILY)
    assert (history.solved.text, history.notes) == ("contiguous()", 3)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"cause": "input-stride"}, {A}), ({"cause": "stride"}, set()), ({"subject": "KWARGS['x']"}, {B}),
        ({"signature": A}, {A}), ({"signature": FAMILY}, {A, B}), ({"words": "transposed batch"}, {A}),
        ({"words": "trans"}, {A}), ({"words": "numpy"}, {B}), ({"words": "numpy stride"}, set()), ({"words": "kwargs"}, {B}),
        ({"words": 'NOT "numpy" OR (x'}, set()), ({"words": "*"}, set()), ({"words": "'; DROP TABLE cases; --"}, set()),
        ({"cause": "' OR 1=1 --"}, set()), ({"words": "numpy", "cause": "input-dtype"}, {B}),
    ],
)  # fmt: skip
def test_search(store, query, found):
    store.add([record(title="a transposed batch of strides")])
    note = CaseNote(text="ids come from NumPy", at="2026-10-05T10:00:00Z")
    store.add([record(B, cause="input-dtype", title="int32", subject="kwargs['x']", notes=(note,))])
    assert {one.signature for one in store.find(CaseQuery(**query))} == found


def test_a_cause_that_is_found_later_replaces_unknown(store):
    store.add([record(cause="unknown", title="")])
    store.add([record(at="2026-09-04T10:00:00Z")])
    assert store.get(A).cause == "input-stride"
    assert [one.signature for one in store.find(CaseQuery(words="wrong strides"))] == [A]


WRITER = """
import sys
from aotidoctor.commands.cases.case_store import open_store
from aotidoctor.model.case import CaseRecord, Sighting
for n in range(20):
    with open_store(sys.argv[1], make=True) as store:
        key = f"{int(sys.argv[2]):016x}{n:016x}"
        seen = Sighting(key=key, at="2026-09-03T10:00:00Z", command="run", subject=key)
        store.add([CaseRecord(signature="aotidoctor2:" + "a" * 16, sightings=(seen,))])
"""


def test_several_processes_make_it_and_write_to_it_at_once(path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path, str(n)]) for n in range(4)]
    assert [one.wait(timeout=300) for one in writers] == [0] * 4
    with open_store(path) as store:
        assert store.get(A).count == 80


def test_what_is_killed_leaves_all_or_nothing(path):
    """A writer that dies inside its transaction: the store is as before it."""
    with open_store(path, make=True) as store:
        store.add([record()])
    code = (
        "import os,sqlite3,sys; c=sqlite3.connect(sys.argv[1],isolation_level=None); c.execute('BEGIN IMMEDIATE');"
        "c.execute('DELETE FROM sightings'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    with open_store(path, write=True) as store:
        assert store.get(A).count == 1
        assert store.add([record(at="2026-09-04T10:00:00Z")]) == (1, 0)


@pytest.mark.parametrize("make", [True, False])
def test_files_of_others_are_refused_and_left_as_they_are(tmp_path, make):
    text, other, newer = tmp_path / "text", tmp_path / "other.sqlite", tmp_path / "newer.sqlite"
    text.write_text("SQLite format 4 " * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE cases (mine)")
    with open_store(str(newer), make=True):
        pass
    with sqlite3.connect(newer) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
        connection.execute("PRAGMA journal_mode = DELETE")
    empty = tmp_path / "empty"
    empty.touch()
    for path in (text, other, newer) if make else (text, other, newer, empty):
        before = path.read_bytes()
        with pytest.raises(CannotExamineError, match=path.name), open_store(str(path), make=make):
            pass
        assert path.read_bytes() == before


def test_a_store_in_memory_is_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store(":memory:", make=True) as store:
        store.add([record()])
    with open_store(":memory:") as store:
        assert store.get(A).count == 1
    with pytest.raises(CannotExamineError), open_store("", make=True):
        pass


def test_what_is_not_there_is_made_only_to_be_written(tmp_path):
    with pytest.raises(CannotExamineError, match="no such file"), open_store(str(tmp_path / "no")):
        pass
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CannotExamineError), open_store(str(tmp_path / "no" / "folder" / "x"), make=True):
        pass


def test_an_export_is_imported_once_and_is_the_same_again(store, tmp_path):
    store.add([record(notes=(CaseNote(text="n", at="2026-10-05T10:00:00Z", solved=True),)), record(B)])
    text = export_text(store, CaseQuery())
    (tmp_path / "cases.json").write_text(text)
    with open_store(str(tmp_path / "second"), make=True) as second:
        assert import_file(second, str(tmp_path / "cases.json"), strict_redactor({})) == (2, 1)
        assert import_file(second, str(tmp_path / "cases.json"), strict_redactor({})) == (0, 0)
        assert export_text(second, CaseQuery()) == text


def test_more_cases_than_a_document_has_are_refused_with_the_way_to_exchange_them(tmp_path, monkeypatch):
    with open_store(str(tmp_path / "1"), make=True) as store:
        store.add([record(), record(B)])
        text = export_text(store, CaseQuery())
        monkeypatch.setattr("aotidoctor.commands.cases.remember.MOST_EXPORTED", 1)
        with pytest.raises(CannotExamineError, match=r"more than 1 cases.*cases merge"):
            export_text(store, CaseQuery())
        assert json.loads(export_text(store, CaseQuery(signature=B)))["cases"][0]["signature"] == B
        (tmp_path / "large.json").write_text(text)
        monkeypatch.setattr("aotidoctor.commands.cases.remember._LARGEST", len(text) - 1)
        with pytest.raises(CannotExamineError, match=r"more than .* bytes; `cases merge`"):
            import_file(store, str(tmp_path / "large.json"), strict_redactor({}))


def test_two_stores_that_are_merged_know_the_same(tmp_path):
    first, second = str(tmp_path / "1"), str(tmp_path / "2")
    with open_store(first, make=True) as one, open_store(second, make=True) as two:
        one.add([record(), record(at="2026-09-04T10:00:00Z")])
        two.add([record(at="2026-09-04T10:00:00Z"), record(B, notes=(CaseNote(text="n", at="2026-10-05T10:00:00Z"),))])
        assert merge(one, second) == (1, 1)
        assert merge(one, second) == (0, 0)
        assert merge(two, first) == (1, 0)
        known = [
            {(case["signature"], case["count"]) for case in json.loads(export_text(it, CaseQuery()))["cases"]}
            for it in (one, two)
        ]
        assert known[0] == known[1] == {(A, 2), (B, 1)}


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"schema": "aotidoctor.cases/9", "cases": []}', "[" * 100_000,
        '{"schema": "aotidoctor.cases/1", "cases": [{"signature": "../../x"}]}',
        json.dumps({"schema": "aotidoctor.cases/1", "cases": [{"signature": A, "notes": [{"text": "x", "at": "soon"}]}]}),
        json.dumps({"schema": "aotidoctor.cases/1", "cases": [{"signature": A, "sightings": [{"at": 1}]}]}),
    ],
)  # fmt: skip
def test_what_is_no_export_adds_nothing(store, tmp_path, text):
    (tmp_path / "cases.json").write_text(text)
    with pytest.raises(CannotExamineError, match=r"cases\.json"):
        import_file(store, str(tmp_path / "cases.json"), strict_redactor({}))
    assert store.find(CaseQuery()) == []


def test_an_import_is_cleaned_and_redacted(store, tmp_path):
    sighting = {"at": "2026-09-03T10:00:00Z", "subject": "\x1b[2Jx /home/alexandra/y", "key": "no key", "later": 1}
    case = {"signature": A, "title": 5, "cause": "x" * 10_000, "sightings": [sighting, 7]}
    (tmp_path / "cases.json").write_text(json.dumps({"schema": "aotidoctor.cases/1", "cases": [case, 3]}))
    assert import_file(store, str(tmp_path / "cases.json"), strict_redactor({})) == (1, 0)
    found = store.whole(store.get(A))
    assert "alexandra" not in found.sightings[0].subject
    assert "\x1b" not in found.sightings[0].subject
    assert len(found.cause) < 500


def test_a_report_is_kept_redacted_and_the_next_one_says_so(path):
    report = builders.misleading()
    report = replace(
        report,
        case=replace(report.case, artifact=replace(report.case.artifact, path="/home/alexandra/secret-model.pt2")),
    )
    environ = {"HOME": "/home/alexandra", "USER": "alexandra"}
    assert remember(path, report, environ).history is None
    again = replace(report, started="2027-01-01T00:00:00Z")
    assert (remember(path, again, environ).history.of, remember(path, again, environ).history.count) == ("exact", 2)
    with open_store(path) as store:
        found = store.whole(store.find(CaseQuery())[0])
    assert found.count == 2
    assert found.cause == report.diagnoses[0].cause
    assert "alexandra" not in repr(found)


def test_a_healthy_report_is_no_case(path, tmp_path):
    assert remember(path, builders.healthy(), {}) == builders.healthy()
    assert list(tmp_path.iterdir()) == []


def test_failures_of_a_fleet_are_kept_once(path, tmp_path):
    folder = write(tmp_path / "r", [failing("a", "input-stride"), failing("b", "input-stride"), healthy("c")])
    assert remember_results(path, folder) == 2
    assert remember_results(path, folder) == 0
    assert case_of_result(healthy("x")) is None


def test_what_is_kept_says_nothing_of_the_machine_but_its_kind():
    found = case_of_report(builders.misleading(), {})
    assert found.sightings[0].host_class.startswith(builders.misleading().case.host.machine)


SOLVED = CaseNote(text="contiguous()", at="2026-10-05T10:00:00Z", solved=True)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"count": 1}, "once on 3 September 2026, last on B"),
        ({"count": 12}, "12 times since 3 September 2026, last 9 September 2026 on B"),
        ({"count": 12, "solved": SOLVED}, "12 times since 3 September 2026, last 9 September 2026 on B; solved by: contiguous() (note of 5 October 2026)"),
        ({"count": 2, "of": "family"}, "not this exact failure; its family 2 times since 3 September 2026, last 9 September 2026 on B"),
        ({"count": 1, "notes": 2, "number": 7}, "once on 3 September 2026, last on B; 2 notes: aotidoctor cases show 7"),
    ],
)  # fmt: skip
def test_what_a_report_says_of_it(more, told):
    given = {"of": "exact", "since": "2026-09-03T10:00:00Z", "last": "2026-09-09T10:00:00Z", "host_class": "B", **more}
    assert report_view.seen_before_text(SeenBefore(**given)) == told
