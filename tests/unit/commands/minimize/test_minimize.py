"""The search for the smallest part: what it asks, what it keeps, and how it ends. No package is compiled."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.commands.minimize import (
    RESULT_FILES,
    STATE_FILE,
    OutOfTimeError,
    PartResult,
    _search,
    fewest_operators,
    key_of,
    open_folder,
)
from aotidoctor.model.errors import CannotExamineError, UsageError

NAMES = tuple(f"n{at}" for at in range(40))


def searched(fails):
    """The result, and what was asked."""
    asked, search = [], fewest_operators(NAMES)
    try:
        names = next(search)
        while True:
            asked.append(names)
            names = search.send(fails(set(names)))
    except StopIteration as end:
        return end.value, asked


@pytest.mark.parametrize("culprits", [{"n0"}, {"n17"}, {"n39"}, {"n3", "n4"}, {"n3", "n30"}, {"n1", "n19", "n38"}])
def test_only_the_culprits_are_left(culprits):
    found, asked = searched(lambda names: culprits <= names)
    assert set(found) == culprits
    assert len(asked) < 60
    assert all(names and len(set(names)) == len(names) for names in asked)


def test_suspects_are_tried_alone_first(tmp_path):
    shop = Shop(("wrong", "numbers"), lambda names: "n17" in names)
    shop.suspected = ("n17",)
    found = _search(shop, folder(tmp_path), lambda _: None)
    assert (found.operators, shop.asked) == (("n17",), [None, ("n17",)])


def test_suspects_that_are_innocent_cost_one_question(tmp_path):
    shop = Shop(("wrong", "numbers"), lambda names: "n17" in names)
    shop.suspected = ("n3", "n4")
    found = _search(shop, folder(tmp_path), lambda _: None)
    assert (found.operators, shop.asked[1]) == (("n17",), ("n3", "n4"))


def test_one_operator_takes_a_question_per_halving():
    _, asked = searched(lambda names: "n17" in names)
    assert len(asked) <= 14


def test_what_needs_all_of_them_keeps_all():
    found, _ = searched(lambda names: len(names) == len(NAMES))
    assert found == NAMES


def test_what_is_returned_failed_also_where_longer_parts_do_not():
    """Failing is not monotone: the assumption of the halves is wrong, the result is right."""

    def fails(names):
        return names == set(NAMES) or ({"n20"} <= names and len(names) % 3 == 1)

    found, _ = searched(fails)
    assert fails(set(found))


class Shop:
    """Fails as told, without a compiler."""

    suspected: tuple[str, ...] = ()

    def __init__(self, wanted, fails, budget=10**6):
        self.wanted, self.fails, self.left, self.asked = wanted, fails, budget, []

    def whole(self):
        return self.wanted

    def suspects(self, _whole):
        return self.suspected

    def attempt(self, names, room: Path):
        self.left -= 1
        if self.left < 0:
            raise OutOfTimeError("the time budget is spent")
        self.asked.append(names)
        for name in RESULT_FILES:
            (room / name).write_text(",".join(names or NAMES))
        failed = self.fails(set(NAMES if names is None else names))
        return PartResult(
            manner=("wrong", "numbers") if failed else None, operators=NAMES, targets=NAMES, package=room / "model.pt2"
        )


def folder(tmp_path: Path):
    return open_folder(tmp_path / "minimized", "key")


def test_a_search_goes_on_where_it_ended(tmp_path):
    def fails(names):
        return {"n3", "n30"} <= names

    told = SimpleNamespace(lines=[])
    first = _search(Shop(("wrong", "numbers"), fails, budget=5), folder(tmp_path), told.lines.append)
    assert (first.ending, first.asked) == ("unfinished", 5)
    again = Shop(("wrong", "numbers"), fails)
    second = _search(again, folder(tmp_path), told.lines.append)
    assert (second.ending, second.operators) == ("smallest", ("n3", "n30"))
    third = Shop(("wrong", "numbers"), fails)
    last = _search(third, folder(tmp_path), told.lines.append)
    assert (last.ending, last.operators, last.asked, third.asked) == ("smallest", ("n3", "n30"), 0, [])
    assert {(tmp_path / "minimized" / name).read_text() for name in RESULT_FILES} == {"n3,n30"}
    assert sorted(path.name for path in (tmp_path / "minimized").iterdir()) == sorted([*RESULT_FILES, STATE_FILE])


def test_how_else_it_ends(tmp_path):
    healthy = _search(Shop(None, lambda _: True), folder(tmp_path), lambda _: None)
    assert healthy.ending == "healthy"
    alone = _search(Shop(("wrong", "numbers"), lambda _: False), folder(tmp_path), lambda _: None)
    assert (alone.ending, alone.operators) == ("package-only", ())
    other = _search(Shop(("exception", None), lambda _: True), folder(tmp_path), lambda _: None)
    assert other.ending == "package-only"
    assert not (tmp_path / "minimized" / STATE_FILE).exists()
    late = _search(Shop(("wrong", "numbers"), lambda _: True, budget=0), folder(tmp_path), lambda _: None)
    assert (late.ending, late.operators) == ("unfinished", ())


def test_a_program_that_cannot_be_compiled_is_no_verdict_on_it(tmp_path):
    shop = Shop(("wrong", "numbers"), lambda _: True)
    shop.attempt = lambda _names, _room: PartResult(problem="compile: no space left on device")
    with pytest.raises(CannotExamineError, match="no space left"):
        _search(shop, folder(tmp_path), lambda _: None)


def test_what_a_killed_search_left_blocks_nothing(tmp_path):
    left = tmp_path / "minimized" / ".attempt-x1y2"
    left.mkdir(parents=True)
    (left / "exported.pt2").write_text("half")
    found = _search(Shop(("wrong", "numbers"), lambda names: "n1" in names), folder(tmp_path), lambda _: None)
    assert found.ending == "smallest"
    assert not left.exists()


def test_a_search_that_was_killed_at_any_moment_can_be_gone_on_with(tmp_path):
    def search():
        return _search(Shop(("wrong", "numbers"), lambda names: "n1" in names), folder(tmp_path), lambda _: None)

    for moment in range(1000):
        shutil.rmtree(tmp_path / "minimized", ignore_errors=True)
        child = os.fork()
        if child == 0:
            left = moment

            def kill(event, _arguments):
                nonlocal left
                if event == "open" or (event.startswith(("os.", "tempfile.")) and event != "os.kill"):
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            try:
                sys.addaudithook(kill)
                search()
                os._exit(0)
            finally:
                os._exit(1)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL)
        assert search().operators == ("n1",)
        if ended == 0 or moment > 60:
            break
        names = {path.name for path in (tmp_path / "minimized").iterdir()}
        assert names == {*RESULT_FILES, STATE_FILE}, moment
    assert moment > 20


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_state_that_is_no_file_is_not_written_through(tmp_path, kind):
    (tmp_path / "mine").write_text("mine")
    opened = folder(tmp_path)
    if kind == "link":
        (tmp_path / "minimized" / STATE_FILE).symlink_to(tmp_path / "mine")
    else:
        os.mkfifo(tmp_path / "minimized" / STATE_FILE)
    with pytest.raises(UsageError, match="not empty"):
        folder(tmp_path)
    with pytest.raises(CannotExamineError, match=STATE_FILE):
        opened.answer(["n1"], failed=False, room=tmp_path)
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError):
        open_folder(tmp_path / "mine", "key")
    _search(Shop(("wrong", "numbers"), lambda names: "n1" in names), folder(tmp_path), lambda _: None)
    with pytest.raises(UsageError):
        open_folder(tmp_path / "minimized", "another key")
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotExamineError):
        open_folder(tmp_path / "file" / "below", "key")


def test_the_key_is_of_the_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    assert key_of(str(tmp_path / "a"), None) == key_of(str(tmp_path / "b"), None)
    assert key_of(str(tmp_path / "a"), None) != key_of(None, str(tmp_path / "a"))


def test_what_cannot_be_read_is_told(tmp_path):
    words = ["minimize", str(tmp_path / "absent"), "-i", str(tmp_path / "x"), "--reference", str(tmp_path / "y")]
    done = CliRunner().invoke(build_app(), [*words, "-o", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 4
    assert "cannot_examine" in done.stdout
    assert not (tmp_path / "out").exists()
