"""The pool of this machine: whatever happens to a process, each job has one answer and the others go on."""

from __future__ import annotations

import os

import pytest

from aotidoctor.fleet.pool import Limits, Pool, PoolJob

CHILD = "tests.unit.fleet.faulty_child"


def answers(jobs, *, limits=None, workers=2, settings=None):
    """The answers by tag."""
    found = {}
    limits = limits or Limits(seconds=60)
    waiting = [PoolJob(tag=str(at), message={"do": do} if isinstance(do, str) else do) for at, do in enumerate(jobs)]
    with Pool(workers, limits, os.environ, settings or {}, child=CHILD) as pool:
        while waiting or pool.pending:
            while waiting and pool.room > 0:
                pool.submit(waiting.pop(0))
            for answer in pool.wait():
                assert answer.job.tag not in found
                found[answer.job.tag] = answer
    assert len(found) == len(jobs)
    return [found[str(at)] for at in range(len(jobs))]


def test_every_job_has_its_answer_and_processes_are_used_again():
    found = answers(["well"] * 20)
    assert all(one.lost is None and one.message["did"] == "well" and len(one.body) == 100_000 for one in found)
    assert len({one.message["pid"] for one in found}) <= 2


@pytest.mark.parametrize(
    ("fault", "lost", "attempts"),
    [("exit", "killed", 2), ("kill", "killed", 2), ("half", "killed", 2), ("nonsense", "killed", 2)],
)
def test_what_kills_its_process_costs_itself_only(fault, lost, attempts):
    found = answers(["well", fault, "well", "well", "well"])
    assert (found[1].lost, found[1].attempts) == (lost, attempts)
    assert [one.lost for one in found if one is not found[1]] == [None] * 4
    if fault == "kill":
        assert "SIGKILL" in found[1].problem


def test_limits_of_time_and_memory():
    limits = Limits(seconds=2.0, memory=150 << 20)
    found = answers(["well", "hang", "eat", "well", "well"], limits=limits)
    assert [one.lost for one in found] == [None, "timed-out", "out-of-memory", None, None]
    assert [one.attempts for one in found] == [1] * 5


def test_what_died_for_another_reason_is_judged_the_second_time(tmp_path):
    found = answers([{"do": "once", "mark": str(tmp_path / "mark")}])
    assert (found[0].lost, found[0].attempts) == (None, 2)


def test_no_process_is_left():
    with Pool(1, Limits(seconds=60), os.environ, {}, child=CHILD) as pool:
        pool.submit(PoolJob(tag="a", message={"do": "well"}))
        found = []
        while not found:
            found = list(pool.wait())
        pool.submit(PoolJob(tag="b", message={"do": "hang"}))
        list(pool.wait())
        pid = found[0].message["pid"]
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_ends_when_its_link_does():
    """As where the process that keeps the results is killed."""
    from aotidoctor.fleet import pool as pool_module
    from aotidoctor.runner.helper_processes import start_companion

    companion = start_companion("aotidoctor.cli.batch_child", os.environ)
    from aotidoctor.fleet.cache import Settings
    from aotidoctor.model.record import as_object, to_json

    pool_module.send_message(companion.link, as_object(to_json(Settings())))
    pool_module.receive_message(companion.link)
    companion.link.close()
    assert companion.process.wait(30) == 0
    companion.end()


def test_a_process_that_cannot_start_is_an_error_and_no_endless_loop():
    with pytest.raises(OSError, match="no such thing"):
        answers(["well"], settings={"start": "fails"})
