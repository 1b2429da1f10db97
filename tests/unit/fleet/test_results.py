"""The record of a result, and the folder that results lie in."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from aotidoctor.fleet.results import Damage, ResultsFolder, read_fleet, read_results
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.fleet import FleetResult, FleetRun
from aotidoctor.model.fleet_summary import FleetFormatError, read_line, read_run, result_line, run_text

A, B, C = "a" * 16, "b" * 16, "c" * 16
RUN = FleetRun(command="check", items=2, started="2026-01-01T00:00:00Z", hosts=("here",), tool="1", argv=("x", "y"))


def made(item, **more):
    return FleetResult(item=item, name=f"{item[0]}.pt2", command="check", verdict="healthy", **more)


FULL = FleetResult(
    item=A, name="a\n<b>.pt2", command="run", ending="timed-out", verdict="problem", status=1, stage="run", cause="x",
    cause_status="confirmed", confidence=0.5, title="t", subject="args[0]", causes=("x", "y"), signature="s",
    family="f", problem="p", sha256="0" * 64, size=3, key="k", inputs="i", reference="r", log="l", host="h",
    labels={"team": "a"}, expected="x", as_expected=True, facts={"isa": "avx2", "n": 1, "y": True}, started="s",
    seconds=1.5, bytes_read=7, attempts=2, tool="1", report="reports/a.json",
)  # fmt: skip


@pytest.mark.parametrize("result", [FULL, made(A)])
def test_a_line_reads_back_as_it_was(result):
    line = result_line(result)
    assert "\n" not in line
    assert read_line(line) == result


def test_a_newer_minor_version_may_add_keys():
    document = json.loads(result_line(FULL)) | {"later": {"a": 1}}
    assert read_line(json.dumps(document)) == FULL


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "aotidoctor.fleet/0"}, {"schema": None}, {"verdict": "fine"}, {"status": "1"}, {"status": True},
        {"labels": ["a"]}, {"labels": {"a": 1}}, {"causes": [1]}, {"cause": 1}, {"item": None}, {"seconds": "1"},
    ],
)  # fmt: skip
def test_what_has_another_type_is_refused(change):
    with pytest.raises(FleetFormatError):
        read_line(json.dumps(json.loads(result_line(FULL)) | change))


@pytest.mark.parametrize("text", ["", "[]", "{}", "1", "{", "[" * 100_000])
def test_what_is_no_line_is_refused(text):
    with pytest.raises(FleetFormatError):
        read_line(text)


def test_what_was_asked_reads_back():
    assert read_run(run_text(RUN)) == RUN


def filled(folder, *results):
    with ResultsFolder(str(folder)) as open_folder:
        open_folder.write_run(RUN)
        for result in results:
            open_folder.add(result, b"{}" if result.report else None)
    return folder


def test_the_later_line_of_an_item_counts(tmp_path):
    filled(tmp_path, made(A, seconds=1), made(B), made(A, seconds=2))
    assert [(one.item, one.seconds) for one in read_results(str(tmp_path))] == [(B, 0), (A, 2)]


def test_in_order_each_item_has_one_line_and_what_is_not_asked_is_gone(tmp_path):
    filled(tmp_path, made(C, report="x"), made(B, report="x"), made(A), made(B, seconds=3, report="x"))
    with ResultsFolder(str(tmp_path)) as folder:
        assert set(folder.kept) == {A, B, C}
        folder.put_in_order([A, B])
    assert [(one.item, one.seconds) for one in read_results(str(tmp_path))] == [(A, 0), (B, 3)]
    assert [path.name for path in (tmp_path / "reports").iterdir()] == [f"{B}.json"]


def test_every_prefix_of_the_file_is_a_folder_that_can_be_gone_on_with(tmp_path):
    """What kill -9 leaves is such a prefix."""
    whole = (filled(tmp_path / "whole", made(A), made(B)) / "results.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(len(whole) + 1):
        folder = filled(tmp_path / str(size))
        (folder / "results.jsonl").write_bytes(whole[:size])
        kept = [A] * (size >= first) + [B] * (size >= len(whole))
        # Of a line that lacks its newline only, the reader takes what is there.
        assert [one.item for one in read_results(str(folder))][: len(kept)] == kept
        with ResultsFolder(str(folder)) as again:
            assert list(again.kept) == kept
            again.add(made(C), None)
        assert [one.item for one in read_results(str(folder))] == [*kept, C]


def test_damaged_lines_are_counted_and_do_not_hide_the_others(tmp_path):
    filled(tmp_path, made(A))
    with (tmp_path / "results.jsonl").open("ab") as stream:
        stream.write(b"nonsense\n" + result_line(made(A)).replace(A, "../../../../etc/x").encode() + b"\n")
        stream.write(result_line(made(B)).encode() + b"\n")
    damage = Damage()
    assert [one.item for one in read_results(str(tmp_path), damage)] == [A, B]
    assert damage.lines == 2


def test_a_disk_that_is_full_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    real = os.write
    with ResultsFolder(str(tmp_path)) as folder:
        folder.write_run(RUN)
        folder.add(made(A), None)

        def half(descriptor, data):
            monkeypatch.setattr(os, "write", full)
            return real(descriptor, data[:10])

        def full(descriptor, data):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space"):
            folder.add(made(B), None)
        monkeypatch.setattr(os, "write", real)
        folder.add(made(C), None)
    assert [one.item for one in read_results(str(tmp_path))] == [A, C]
    assert (tmp_path / "results.jsonl").read_bytes().count(b"\n") == 2


def test_two_cannot_write_into_one_folder(tmp_path):
    with ResultsFolder(str(tmp_path)), pytest.raises(UsageError, match="another"), ResultsFolder(str(tmp_path)):
        pass


@pytest.mark.parametrize("text", ['{"schema": "aotidoctor.fleet/0"}', "[]", "not JSON"])
def test_a_folder_of_another_version_is_refused_and_left_alone(tmp_path, text):
    filled(tmp_path, made(A))
    (tmp_path / "fleet.json").write_text(text)
    before = (tmp_path / "results.jsonl").read_bytes()
    with pytest.raises(UsageError, match="-o"), ResultsFolder(str(tmp_path)):
        pass
    with pytest.raises(CannotExamineError):
        read_fleet(str(tmp_path))
    assert (tmp_path / "results.jsonl").read_bytes() == before


def test_results_of_another_version_are_refused(tmp_path):
    filled(tmp_path, made(A))
    path = tmp_path / "results.jsonl"
    path.write_text(path.read_text().replace("fleet/1", "fleet/9"))
    with pytest.raises(CannotExamineError, match="fleet/9"):
        list(read_results(str(tmp_path)))


def test_a_results_file_that_is_a_link_is_not_written_through(tmp_path):
    target = tmp_path / "mine.txt"
    target.write_text("")
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "fleet.json").write_text(run_text(RUN))
    (folder / "results.jsonl").symlink_to(target)
    with pytest.raises(OSError), ResultsFolder(str(folder)):
        pass
    assert target.read_text() == ""


@pytest.mark.parametrize("name", ["fleet.json", "results.jsonl", ".lock", "reports"])
@pytest.mark.parametrize("kind", ["file", "folder", "dangling", "pipe"])
def test_a_folder_from_elsewhere_leads_nowhere_else(tmp_path, name, kind):
    mine, folder = tmp_path / "mine", tmp_path / "results"
    filled(folder, made(A, report="x"))
    mine.mkdir()
    (mine / "file").write_text("mine")
    (mine / f"{A}.json").write_text("mine")
    (folder / name).rename(tmp_path / "away")
    target = {"file": mine / "file", "folder": mine, "dangling": mine / "absent"}
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(target[kind])
    # Who holds a lock on a pipe of the folder's own harms nobody.
    if (name, kind) != (".lock", "pipe"):
        with pytest.raises((OSError, UsageError)):
            filled(folder, made(A, report="x"), made(B, report="x"))
    assert sorted(os.listdir(mine)) == [f"{A}.json", "file"]
    assert {path.read_text() for path in mine.iterdir()} == {"mine"}


def test_reports_that_are_links_are_not_written_through(tmp_path):
    (tmp_path / "mine").write_text("mine")
    folder = filled(tmp_path / "results", made(A))
    (folder / "reports" / f"{B}.json").symlink_to(tmp_path / "mine")
    with ResultsFolder(str(folder)) as again:
        assert not again.has_report(B)
        with pytest.raises(OSError, match="symbolic link"):
            again.add(made(B, report="x"), b"{}")
        # One that goes is the link.
        again.put_in_order([A])
    assert (tmp_path / "mine").read_text() == "mine"
    assert os.listdir(folder / "reports") == []


@pytest.mark.parametrize("name", ["fleet.json", "results.jsonl"])
def test_a_pipe_in_the_place_of_results_is_not_waited_for(tmp_path, name):
    folder = filled(tmp_path, made(A))
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(CannotExamineError, match="it is a pipe"):
        read_fleet(str(folder)) and list(read_results(str(folder)))


def test_a_batch_that_was_killed_at_any_moment_can_be_gone_on_with(tmp_path):
    """Killed before each of its operations on files, by itself: nobody else hits every moment."""
    for moment in range(1000):
        folder = tmp_path / str(moment)
        child = os.fork()
        if child == 0:
            left = moment

            def kill(event, _arguments):
                nonlocal left
                if event == "open" or (event.startswith("os.") and event != "os.kill"):
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            try:
                sys.addaudithook(kill)
                with ResultsFolder(str(folder)) as results:
                    results.write_run(RUN)
                    results.add(made(A), None)
                    results.add(made(B, report="x"), b"{}")
                    results.put_in_order([B])
                os._exit(0)
            finally:
                os._exit(1)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL)
        with ResultsFolder(str(folder)) as again:
            again.write_run(RUN)
            again.add(made(C), None)
            again.put_in_order([C])
        assert [one.item for one in read_results(str(folder))] == [C]
        assert sorted(os.listdir(folder)) == [".lock", "fleet.json", "reports", "results.jsonl"]
        assert os.listdir(folder / "reports") == []
        if ended == 0:
            break
    assert 20 < moment < 100


@pytest.mark.parametrize("letter", ["a", "\udcff"])
def test_no_line_is_longer_than_its_reader_takes(tmp_path, letter):
    result = made(A, labels={"team": letter * 1_100_000}, inputs=letter * 400_000, seconds=3.0)
    folder = filled(tmp_path, result, made(B))
    assert max(map(len, (folder / "results.jsonl").read_bytes().splitlines(keepends=True))) <= 1 << 20
    damage = Damage()
    short, _ = read_results(str(folder), damage)
    assert damage.lines == 0
    assert (short.item, short.verdict, short.seconds, short.labels) == (A, "healthy", 3.0, {})
    assert "labels and facts are left out" in short.problem


def test_what_a_killed_process_left_of_a_write_is_removed(tmp_path):
    filled(tmp_path / "r", made(A))
    left = [tmp_path / "r" / "reports" / ".aotidoctor.12.0123abcd", tmp_path / "r" / ".aotidoctor.7.00000000"]
    others = [tmp_path / "r" / "reports" / ".keep", tmp_path / "r" / f".{A}.json.x", tmp_path / "r" / ".mine.7"]
    for path in left + others:
        path.write_text("half")
    with ResultsFolder(str(tmp_path / "r")):
        pass
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("as_expected", 1, "bool"),
        ("causes", "x", "a list"),
        ("causes", [1], "str"),
        ("labels", ["a"], "an object"),
        ("facts", "x", "an object"),
        ("size", 1.5, "int"),
        ("size", True, "int"),
        ("verdict", "fine", "healthy, problem or unknown"),
    ],
)
def test_a_field_of_another_type_is_told(key, value, expected):
    document = json.loads(result_line(FULL))
    assert key in document
    with pytest.raises(FleetFormatError, match=f"{key}.*expected {expected}"):
        read_line(json.dumps({**document, key: value}))
