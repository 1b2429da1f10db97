"""A store of cases that somebody else made: it costs bounded time and memory, runs nothing and stays as it is."""

from __future__ import annotations

import os
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.commands.cases import store_file
from aotidoctor.commands.cases.case_store import CaseQuery, open_store
from aotidoctor.commands.cases.remember import export_text, merge
from aotidoctor.model.case import CaseNote, CaseRecord, Sighting
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.runner.own_command import RunningCommand

A, B = "aotidoctor2:" + "a" * 16, "aotidoctor2:" + "b" * 16
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
COLUMNS = "number, signature, family, cause, stage, title, looked_like"
# Each is a statement that makes a real store do more than keep rows, and the object that it adds.
SCHEMAS = {
    "a view instead of a table": (
        f"ALTER TABLE cases RENAME TO real; CREATE VIEW cases ({COLUMNS}) AS SELECT n, n, n, n, n, n, n FROM ({ENDLESS})"
    ),
    "a view that takes memory": (
        f"ALTER TABLE cases RENAME TO real; CREATE VIEW cases ({COLUMNS}) AS"
        f" SELECT n, hex(zeroblob(400000000)), n, n, n, n, n FROM ({ENDLESS})"
    ),
    "a trigger that never ends": (
        f"CREATE TRIGGER t AFTER INSERT ON sightings BEGIN INSERT INTO notes SELECT 1, n, '', '', 0 FROM ({ENDLESS}); END"
    ),
    "a trigger that deletes": "CREATE TRIGGER t AFTER INSERT ON sightings BEGIN DELETE FROM notes; END",
    "a column that is computed": "ALTER TABLE cases ADD COLUMN big AS (hex(zeroblob(400000000)))",
    "an index of an expression": "CREATE INDEX i ON cases (hex(zeroblob(length(title) * 1000000)))",
    "a table of another module": "CREATE VIRTUAL TABLE more USING fts5 (x)",
    "another table": "CREATE TABLE more (x)",
    "a check": "DROP TABLE notes; CREATE TABLE notes (case_number, key UNIQUE, at, text, solved CHECK (hex(zeroblob(9)) != ''))",
    "words of another table": "DROP TABLE words; CREATE VIRTUAL TABLE words USING fts5 (signature, content='cases')",
}  # fmt: skip


def record(signature=A, text="wrong strides", at="2026-09-03T10:00:00Z"):
    key = f"{abs(hash((signature, at))):032x}"[-32:]
    note = CaseNote(text=text, at=at)
    seen = Sighting(key=key, at=at, command="run", subject="args[0]", host_class="x86_64", status="confirmed")
    return CaseRecord(signature=signature, cause="input-stride", title=text, sightings=(seen,), notes=(note,))


def make(path, *records):
    with open_store(str(path), make=True) as store:
        store.add([*records] or [record()])
    return path


def change(path, script):
    """Change a store in the way of its owner; afterwards it lies alone, without a log of what was written."""
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA journal_mode = DELETE; {script}")
    connection.close()
    return path


def everything(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_a_store_of_ours_has_not_is_refused_by_everyone_that_opens_it(tmp_path, schema):
    (tmp_path / "other").mkdir()
    other = change(make(tmp_path / "other" / "x"), SCHEMAS[schema])
    before = everything(tmp_path / "other")
    with open_store(str(tmp_path / "mine"), make=True) as mine:
        with pytest.raises(CannotExamineError, match="schema"):
            merge(mine, str(other))
        assert mine.find(CaseQuery()) == []
    for given in ({}, {"write": True}, {"make": True}):
        with pytest.raises(CannotExamineError, match="schema"), open_store(str(other), **given):
            pass
    assert everything(tmp_path / "other") == before


def test_a_log_is_classified_where_the_store_has_a_trigger(tmp_path):
    store = change(make(tmp_path / "x"), SCHEMAS["a trigger that never ends"])
    (tmp_path / "log").write_text("RuntimeError: Expected dtype int64 but got int32\n")
    words = ["classify", str(tmp_path / "log"), "--cases", str(store), "--json"]
    done = CliRunner().invoke(build_app(), words)
    assert done.stdout.startswith("{")
    assert "schema" in done.stderr
    assert "'t'" in done.stderr


@pytest.mark.parametrize("open_elsewhere", [False, True])
def test_another_store_is_not_changed_by_a_merge(tmp_path, open_elsewhere):
    (tmp_path / "other").mkdir()
    other = make(tmp_path / "other" / "x", record(), record(B))
    owner = sqlite3.connect(other)
    if open_elsewhere:
        owner.execute("UPDATE cases SET title = 'changed'")
        owner.commit()
    else:
        owner.close()
    before = everything(tmp_path / "other")
    with open_store(str(tmp_path / "mine"), make=True) as mine:
        assert merge(mine, str(other)) == (2, 2)
        titles = {case.title for case in mine.find(CaseQuery())}
    after = everything(tmp_path / "other")
    # Who reads a file that is written to elsewhere takes part in its lock, and in nothing else.
    assert {name: part for name, part in after.items() if not name.endswith("-shm")} == {
        name: part for name, part in before.items() if not name.endswith("-shm")
    }
    assert titles == ({"changed"} if open_elsewhere else {"wrong strides"})
    owner.close()


def test_what_is_read_cannot_be_written_to(tmp_path):
    with open_store(str(make(tmp_path / "x"))) as store, pytest.raises(CannotExamineError, match="readonly"):
        store.add([record(B)])


def test_a_store_that_is_written_to_meanwhile_is_said_to_be(tmp_path):
    path = make(tmp_path / "x")
    with open_store(str(path)) as store:
        assert len(store.find(CaseQuery())) == 1
        change(path, "UPDATE cases SET title = 'later'")
        with pytest.raises(CannotExamineError, match="while it was read"):
            store.find(CaseQuery())


def without_end(path):
    """A store whose tree of cases leads to the same leaf again and again, some 70 to the power of 17 times."""
    make(path)
    change(path, "PRAGMA page_size = 512; VACUUM")
    connection = sqlite3.connect(path)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'cases'").fetchone()[0]
    connection.close()
    data = bytearray(path.read_bytes())
    last = len(data) // 512
    leaf, nodes = last + 1, range(last + 2, last + 19)
    page = data[(root - 1) * 512 : root * 512]

    def node(child):
        cells = [struct.pack(">IB", child, 100)] * 70
        start = 512 - 5 * len(cells)
        head = struct.pack(">BHHHBI", 5, 0, len(cells), start, 0, child)
        pointers = b"".join(struct.pack(">H", start + 5 * at) for at in range(len(cells)))
        return (head + pointers).ljust(start, b"\0") + b"".join(cells)

    data[(root - 1) * 512 : root * 512] = node(nodes[-1])
    data += page + b"".join(node(leaf if at == nodes[0] else at - 1) for at in nodes)
    struct.pack_into(">I", data, 28, len(data) // 512)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("what", ["find", "export", "merge"])
def test_a_tree_without_end_is_read_for_a_bounded_time(tmp_path, monkeypatch, what):
    monkeypatch.setattr(store_file, "MOST_SECONDS", 0.5)
    path = str(without_end(tmp_path / "x"))
    with open_store(str(tmp_path / "mine"), make=True) as mine, open_store(path) as other:
        ask = {
            "find": lambda: other.find(CaseQuery()),
            "export": lambda: export_text(other, CaseQuery()),
            "merge": lambda: merge(mine, path),
        }[what]
        with pytest.raises(CannotExamineError, match=r"processor time|damaged"):
            ask()


MEASURED = """
import sys
from aotidoctor.commands.cases.case_store import CaseQuery, open_store
from aotidoctor.commands.cases.remember import export_text, merge
from aotidoctor.model.errors import CannotExamineError
def most():
    # Not ru_maxrss, which begins with that of the parent.
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
before = most()
try:
    with open_store(sys.argv[1]) as store:
        export_text(store, CaseQuery())
except CannotExamineError as error:
    print(error)
with open_store(sys.argv[1] + ".mine", make=True) as mine:
    try:
        merge(mine, sys.argv[1])
    except CannotExamineError as error:
        print(error)
print((most() - before) >> 10)
"""


@pytest.mark.parametrize("text", [("hex(zeroblob(200000000))", 1), ("hex(zeroblob(2000000))", 120)])
def test_long_texts_in_a_store_take_bounded_memory(tmp_path, text):
    path = make(tmp_path / "x")
    expression, rows = text
    change(
        path,
        f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {rows}) INSERT INTO notes"
        f" SELECT 1, 'key' || n, '2026-09-03T10:00:00Z', {expression}, 0 FROM c",
    )
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    *errors, mebibytes = done.stdout.splitlines()
    assert len(errors) == 2
    assert all(str(path) in error for error in errors)
    assert int(mebibytes) < 350


@pytest.mark.parametrize("given", [{}, {"write": True}, {"make": True}])
def test_what_is_no_regular_file_is_no_store(tmp_path, given):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(CannotExamineError, match=name), open_store(str(tmp_path / name), **given):
            pass
    assert Path(tmp_path / "pipe").is_fifo()


def test_what_another_store_says_is_cleaned(tmp_path):
    other = make(tmp_path / "x")
    change(
        other,
        "UPDATE cases SET title = char(27) || '[2J' || hex(zeroblob(5000)); UPDATE notes SET at = '2026-09-04T10:00:00Z'",
    )
    with open_store(str(tmp_path / "mine"), make=True) as mine:
        assert merge(mine, str(other)) == (1, 1)
        [found] = mine.find(CaseQuery())
    assert "\x1b" not in found.title
    assert len(found.title) < 500
    change(other, "UPDATE cases SET signature = '../../x'")
    with open_store(str(tmp_path / "mine"), make=True) as mine, pytest.raises(CannotExamineError, match="signature"):
        merge(mine, str(other))


@pytest.mark.parametrize(("name", "status"), [("link.sqlite", 4), ("own.sqlite", 0)])
def test_a_confined_command_opens_no_store_that_lies_outside(tmp_path, name, status):
    root = tmp_path / "the root"
    root.mkdir()
    for place in (tmp_path / "outside.sqlite", root / "own.sqlite"):
        with open_store(str(place), make=True):
            pass
    (root / "link.sqlite").symlink_to(tmp_path / "outside.sqlite")
    done = RunningCommand(["cases", "--cases", name], cwd=str(root), seconds=120.0, most=1 << 20).run()
    assert done.status == status, done.stderr
    assert ("leads out of the root folder" in done.stderr) == bool(status)
