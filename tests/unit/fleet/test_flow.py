"""The flow with an engine that answers as it is told: what is kept, what is judged again, what becomes of lost items."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace

import pytest

from aotidoctor.fleet.cache import Cache, Settings, answer_key, content_digest
from aotidoctor.fleet.flow import FleetFlow, FleetTally, FlowContext
from aotidoctor.fleet.items import FleetItem, read_item
from aotidoctor.fleet.pool import PoolAnswer
from aotidoctor.fleet.results import ResultsFolder, read_results
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.fleet import FleetResult, FleetRun
from aotidoctor.model.fleet_summary import result_line


class Engine:
    """Answers at once. ``how`` says by the base name of a path how an item ends; without a word it is healthy."""

    def __init__(self, **how):
        self.how, self.jobs, self.judged = how, [], []

    @property
    def pending(self):
        return len(self.jobs)

    @property
    def room(self):
        return 2 - len(self.jobs)

    def submit(self, job):
        assert self.room > 0
        self.jobs.append(job)

    def wait(self):
        job = self.jobs.pop(0)
        if job.message.get("op") == "digest":
            lost = self.how.get("digest")
            digests = [list(content_digest(path)) for path in job.message["paths"]]
            yield PoolAnswer(job=job, lost=lost) if lost else PoolAnswer(job=job, message={"digests": digests})
            return
        item = read_item(job.message)
        name = os.path.basename(item.path)
        self.judged.append(name)
        ending = self.how.get(name, "healthy")
        if ending in ("killed", "timed-out", "out-of-memory"):
            yield PoolAnswer(job=job, lost=ending, problem="as told", attempts=2)
            return
        status = {"healthy": 0, "problem": 1, "internal": 5}.get(ending, 0)
        verdict = {"healthy": "healthy", "problem": "problem"}.get(ending, "unknown")
        line = result_line(FleetResult(item=item.id, name=item.path, command="check", verdict=verdict, status=status))
        if ending == "nonsense":
            line = "{}"
        yield PoolAnswer(job=job, message={"line": line}, body=b"" if ending == "healthy" else b"{}")


@pytest.fixture
def go(tmp_path):
    """``go(engine, finished=…)``: one run over the files a, b and c; the lines by name, and the tally."""
    fleet = []
    for name in "abc":
        (tmp_path / name).write_text(name)
        fleet.append(FleetItem(command="check", path=str(tmp_path / name)))

    def go(engine, *, keep_lost=False, cache=None, output="out", change=lambda item: item, hosts=None):
        tally = FleetTally(total=3)
        folder = str(tmp_path / output)
        asked = [change(item) for item in fleet]
        with ResultsFolder(folder) as results, Cache(cache) as kept:
            results.write_run(FleetRun(command="check", items=3, started=""))
            means = FlowContext(
                settings=Settings(), folder=results, cache=kept, engine=engine, host_key=hosts or (lambda _name: "host"),
                redact=str, on_progress=lambda _tally: None, keep_lost=keep_lost,
            )  # fmt: skip
            FleetFlow(means, tally).run(asked)
            results.put_in_order([item.id for item in asked])
        return {os.path.basename(one.name): one for one in read_results(folder)}, tally

    return go


@pytest.mark.parametrize("ending", ["killed", "timed-out", "out-of-memory"])
def test_a_lost_item_is_kept_where_a_run_goes_on_and_judged_again_in_the_next_one(go, ending):
    found, _ = go(Engine(b=ending))
    assert (found["b"].ending, found["b"].verdict, found["b"].attempts) == (ending, "unknown", 2)
    assert found["b"].key
    goes_on = Engine()
    found, tally = go(goes_on, keep_lost=True)
    assert (goes_on.judged, tally.kept, found["b"].ending) == ([], 3, ending)
    next_one = Engine()
    found, tally = go(next_one)
    assert (next_one.judged, tally.kept, found["b"].ending) == (["b"], 2, "judged")


def test_a_fault_of_our_own_is_not_remembered(go, tmp_path):
    cache = str(tmp_path / "cache")
    go(Engine(b="internal", c="nonsense"), cache=cache)
    for output in ("out", "other"):
        engine = Engine()
        found, _ = go(engine, cache=cache, output=output)
        assert engine.judged == (["b", "c"] if output == "out" else [])
        assert {one.verdict for one in found.values()} == {"healthy"}


def test_what_does_not_answer_sense_is_our_failure(go):
    found, _ = go(Engine(a="nonsense"))
    assert (found["a"].ending, found["a"].status) == ("failed", 5)


def test_without_digests_every_item_is_judged_and_none_is_remembered(go, tmp_path):
    cache = str(tmp_path / "cache")
    found, _ = go(Engine(digest="timed-out"), cache=cache)
    assert {(one.verdict, one.key, one.sha256) for one in found.values()} == {("healthy", "", None)}
    again = Engine()
    go(again, cache=cache)
    assert sorted(again.judged) == ["a", "b", "c"]


def test_an_answer_whose_report_is_gone_is_judged_again(go, tmp_path):
    found, _ = go(Engine(b="problem"))
    (tmp_path / "out" / found["b"].report).unlink()
    engine = Engine(b="problem")
    go(engine)
    assert engine.judged == ["b"]


def test_a_host_that_is_unknown_costs_its_items_only(go):
    def hosts(name):
        if name is None:
            return "host"
        raise CannotExamineError("no such profile")

    def change(item):
        return replace(item, host="other") if item.path.endswith("b") else item

    engine = Engine()
    found, _ = go(engine, hosts=hosts, change=change)
    assert (found["b"].ending, found["b"].problem) == ("unreadable", "no such profile")
    assert sorted(engine.judged) == ["a", "c"]


def test_everything_that_decides_is_part_of_the_key():
    item = FleetItem(command="check", path="m", inputs="i")
    base = answer_key(item, ["1", "2"], Settings(), "h")
    others = [
        answer_key(item, ["1", "3"], Settings(), "h"), answer_key(item, ["1", "2"], Settings(), "g"),
        answer_key(item, ["1", "2"], Settings(fail_on="warn"), "h"), answer_key(item, ["1", "2"], Settings(device="cuda"), "h"),
        answer_key(replace(item, path="m.so"), ["1", "2"], Settings(), "h"),
        answer_key(replace(item, command="run"), ["1", "2"], Settings(), "h"),
        answer_key(replace(item, inputs=None, reference="i"), ["1", "2"], Settings(), "h"),
    ]  # fmt: skip
    assert len({base, *others}) == len(others) + 1
    # Names, labels and the time that an item may take decide nothing.
    same = [
        answer_key(replace(item, path="n", labels={"a": "b"}, expected="x"), ["1", "2"], Settings(), "h"),
        answer_key(item, ["1", "2"], Settings(item_timeout=1), "h"), answer_key(item, ["1", "2"], Settings(timeout=1), "h"),
    ]  # fmt: skip
    assert set(same) == {base}


def test_a_bare_library_has_no_digest(tmp_path):
    """What lies beside it decides, too: it is judged each time."""
    (tmp_path / "x.so").write_bytes(b"\x7fELF and more")
    with pytest.raises(OSError):
        content_digest(str(tmp_path / "x.so"))


def write_database(path):
    base = sqlite3.connect(path)
    base.executescript(
        "PRAGMA user_version = 7; CREATE TABLE answers (x); CREATE TABLE mine (x); INSERT INTO mine VALUES (1)"
    )
    base.close()


@pytest.mark.parametrize("kind", ["a text", "a database", "a link to a text"])
def test_a_file_of_something_else_is_no_cache_and_stays(tmp_path, kind):
    path = tmp_path / "mine"
    write_database(path) if kind == "a database" else path.write_text("my notes\n")
    before = path.read_bytes()
    if kind.startswith("a link"):
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    with Cache(str(path)) as cache:
        assert "cannot be used" in cache.problem
        assert cache.answer("key", "item") is None
    assert path.read_bytes() == before
    assert path.is_symlink() == kind.startswith("a link")


def test_a_damaged_cache_is_begun_again(tmp_path):
    path = tmp_path / "cache"
    with Cache(str(path)) as cache:
        cache.keep_answer("key", "item", "{}", None, healthy=True)
    path.write_bytes(path.read_bytes()[:100] + b"x" * 5000)
    with Cache(str(path)) as cache:
        assert cache.problem is None
        assert cache.answer("key", "item") is None
