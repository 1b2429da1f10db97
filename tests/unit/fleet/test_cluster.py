"""The same fleet on a Dask cluster: a real scheduler and real workers, some of which are killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from aotidoctor.fleet.dask_cluster import ClusterLostError, DaskCluster, Patience, within
from aotidoctor.fleet.pool import Limits, PoolAnswer, PoolJob
from tests.optional import optional
from tests.unit.fleet.test_batch import environ, many, results, steady, words
from tests.waiting import outlived

optional("distributed")

pytestmark = pytest.mark.slow

ITEMS = 120
ALONE = ["--jobs", "2"]


class Dask:
    """A scheduler and its workers, as separate processes."""

    def __init__(self, folder, workers=2):
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.workers = [self.worker() for _ in range(workers)]
        self.address = json.loads(self._file.read_text())["address"]

    def _start(self, which, *more):
        command = [sys.executable, "-m", f"distributed.cli.dask_{which}", "--scheduler-file", str(self._file), *more]
        environment = {**environ(), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        process = subprocess.Popen(
            [*command, "--no-dashboard"], cwd=self._folder, env=environment,
            stdout=subprocess.DEVNULL, stderr=(self._folder / f"{which}.err").open("ab"),
        )  # fmt: skip
        # It is there before it is written.
        while not self._file.exists() or not self._file.read_text().endswith("}"):
            assert process.poll() is None, (self._folder / f"{which}.err").read_text()
            time.sleep(0.05)
        return process

    def worker(self):
        return self._start("worker", "--nthreads", "1", "--no-nanny")

    def kill_workers(self):
        for process in self.workers:
            process.kill()
            process.wait()

    def replace_dead_workers(self):
        self.workers = [process if process.poll() is None else self.worker() for process in self.workers]

    @contextmanager
    def kept_up(self):
        """Within: a worker that ends is replaced."""
        over = threading.Event()

        def replace_them():
            while not over.wait(0.05):
                self.replace_dead_workers()

        thread = threading.Thread(target=replace_them)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def end(self):
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    cluster = Dask(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.end()


@pytest.fixture
def own_dask(tmp_path):
    """One to be broken, with one worker."""
    cluster = Dask(tmp_path, workers=1)
    yield cluster
    cluster.end()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A fleet, and its results as one machine gives them."""
    folder = tmp_path_factory.mktemp("fleet")
    many(folder / "m", ITEMS)
    subprocess.run(words("m", "-o", "alone", *ALONE, cwd=folder), check=False, cwd=folder, env=environ(), timeout=120)
    return folder


def start(place, output, *more):
    return subprocess.Popen(
        words("m", "-o", output, "--json", *more, cwd=place), cwd=place, env=environ(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for_lines(place, output, count, running):
    lines = place / output / "results.jsonl"
    while running.poll() is None and (not lines.exists() or lines.read_bytes().count(b"\n") < count):
        time.sleep(0.005)


def without_key(lines):
    """The machines that judge are part of the key."""
    return [{name: value for name, value in line.items() if name != "key"} for line in lines]


def same_as_alone(place, output):
    assert without_key(steady(place / output)) == without_key(steady(place / "alone"))
    assert sorted(os.listdir(place / output / "reports")) == sorted(os.listdir(place / "alone" / "reports"))


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(dask, place):
    running = start(place, "worker", "--scheduler", dask.address)
    wait_for_lines(place, "worker", ITEMS // 4, running)
    dask.workers[0].kill()
    dask.workers[0].wait()
    told, stderr = running.communicate(timeout=200)
    assert running.returncode == 1, stderr
    assert json.loads(told)["judged"] == ITEMS
    same_as_alone(place, "worker")
    dask.workers[0] = dask.worker()


def test_a_client_that_is_killed_goes_on_where_it_was(dask, place):
    running = start(place, "client", "--scheduler", dask.address)
    wait_for_lines(place, "client", ITEMS // 3, running)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    again = start(place, "client", "--scheduler", dask.address)
    summary = json.loads(again.communicate(timeout=200)[0])
    assert summary["kept"] >= ITEMS // 3
    assert summary["kept"] + summary["judged"] == ITEMS
    same_as_alone(place, "client")


def test_a_scheduler_that_is_lost_leaves_a_valid_part(tmp_path, place):
    cluster = Dask(tmp_path)
    try:
        running = start(place, "scheduler", "--scheduler", cluster.address)
        wait_for_lines(place, "scheduler", ITEMS // 4, running)
        cluster.scheduler.kill()
        _, stderr = running.communicate(timeout=200)
    finally:
        cluster.end()
    assert running.returncode == 4, stderr
    assert "lost" in stderr
    assert "Traceback" not in stderr
    part = results(place / "scheduler")
    assert ITEMS // 4 <= len(part) < ITEMS
    subprocess.run(words("m", "-o", "scheduler", *ALONE, cwd=place), check=False, cwd=place, env=environ(), timeout=120)
    same_as_alone(place, "scheduler")


# The command with less patience: how long it waits for somebody is not asked here.
IMPATIENT = """
import json
import sys
from functools import partial
from aotidoctor.__main__ import main
from aotidoctor.commands import batch

batch.Patience = partial(batch.Patience, **json.loads(sys.argv.pop(1)))
sys.exit(main())
"""


def start_impatient(place, output, address, *more, **patience):
    asked = words("m", "-o", output, "--json", "--scheduler", address, *more, cwd=place)
    assert asked[:3] == [sys.executable, "-m", "aotidoctor"]
    return subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, json.dumps(patience), *asked[3:]], cwd=place, env=environ(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_workers_that_are_lost_leave_a_valid_part(own_dask, place):
    running = start_impatient(place, "workers", own_dask.address, "--worker-timeout", "2s", tell=0.2)
    wait_for_lines(place, "workers", ITEMS // 4, running)
    own_dask.kill_workers()
    _, stderr = running.communicate(timeout=200)
    assert running.returncode == 4, stderr
    told, end = (line for line in stderr.splitlines() if "no worker" in line)
    assert told.startswith(f"aotidoctor: warning: the scheduler {own_dask.address} has had no worker for 0.2 s")
    assert "no worker for 2 s (--worker-timeout)" in end
    assert "Traceback" not in stderr
    assert ITEMS // 4 <= len(results(place / "workers")) < ITEMS
    subprocess.run(words("m", "-o", "workers", *ALONE, cwd=place), check=False, cwd=place, env=environ(), timeout=120)
    same_as_alone(place, "workers")


def test_nobody_at_the_address(place):
    running = start_impatient(place, "nobody", "tcp://127.0.0.1:9", connect=1.0)
    _, stderr = running.communicate(timeout=120)
    assert running.returncode == 4, stderr
    assert "Traceback" not in stderr


def test_somebody_at_the_address_who_says_nothing(place):
    # The folder of the last time: nothing is in it, and it is no obstacle.
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            running = start_impatient(place, "mute", f"tcp://127.0.0.1:{mute.getsockname()[1]}", connect=1.0)
            _, stderr = running.communicate(timeout=120)
        assert running.returncode == 4, stderr
        assert "Traceback" not in stderr


@pytest.mark.parametrize(
    "more", [["--cluster", "local:0"], ["--cluster", "slurm:2"], ["--cluster", "local:1", "--scheduler", "tcp://x"]]
)
def test_what_cannot_be_meant_is_a_usage_error(place, more):
    running = start(place, "none", *more)
    out, said = running.communicate(timeout=60)
    assert (running.returncode, out) == (2, "")
    assert more[0] in said
    assert not (place / "none").exists()


def deadly(messages, _settings, _limits):
    """One job takes its worker with it; of a pack, two at most are answered at a time."""
    if any(message["do"] == "die" for message in messages):
        os.kill(os.getpid(), signal.SIGKILL)
    return [PoolAnswer(job=PoolJob(tag="", message={}), message={"did": message["do"]}) for message in messages[:2]]


LIMITS = Limits(seconds=60)
# Taken where all is as the test wants it: how long it takes to get there is not asked.
NO_WORKERS = Patience(tell=0.2, workers=1.0, look=0.1)
NO_ANSWERS = Patience(answer=1.0, look=0.1, close=2.0)


def children():
    return [child for child in multiprocessing.active_children() if child.name.startswith("Dask")]


def kill_children(number):
    for child in children():
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)


def answers(cluster, tags):
    found = {}
    for tag in tags:
        cluster.submit(PoolJob(tag=tag, message={"do": tag}))
    while cluster.pending:
        for answer in cluster.wait():
            assert answer.job.tag not in found
            found[answer.job.tag] = answer
    return found


def test_a_job_that_kills_its_worker_is_tried_once_more_and_then_reported(tmp_path):
    # With workers that are replaced here: a nanny of Dask's gives up where a worker dies while it starts.
    dask = Dask(tmp_path)
    try:
        with dask.kept_up(), DaskCluster(dask.address, 0, LIMITS, {}, judge=deadly) as cluster:
            found = answers(cluster, ("well", "die", "also", "more"))
    finally:
        dask.end()
    assert {tag: one.lost for tag, one in found.items()} == {"well": None, "die": "killed", "also": None, "more": None}
    assert found["die"].attempts == 2


def test_the_rest_of_a_pack_goes_on_its_way_again():
    tags = [str(at) for at in range(70)]
    with DaskCluster(None, 1, LIMITS, {}, judge=deadly) as cluster:
        found = answers(cluster, tags)
    assert {tag: one.message["did"] for tag, one in found.items()} == {tag: tag for tag in tags}


def test_without_workers_the_cluster_is_lost(own_dask):
    said = []
    with DaskCluster(own_dask.address, 0, LIMITS, {}, judge=deadly, on_warning=said.append) as cluster:
        answers(cluster, ("before",))
        own_dask.kill_workers()
        cluster.patience = NO_WORKERS
        with pytest.raises(ClusterLostError, match="no worker for 1 s"):
            answers(cluster, ("after",))
    assert len(said) == 1
    assert f"{own_dask.address} has had no worker for 0.2 s" in said[0]


def test_a_worker_that_comes_in_time_goes_on(own_dask):
    said = []

    def come(line):
        said.append(line)
        own_dask.replace_dead_workers()

    patience = replace(NO_WORKERS, workers=600.0)
    with DaskCluster(own_dask.address, 0, LIMITS, {}, judge=deadly, patience=patience, on_warning=come) as cluster:
        answers(cluster, ("before",))
        said.clear()
        for time_of in ("first", "second"):
            own_dask.kill_workers()
            assert answers(cluster, (time_of,))[time_of].message == {"did": time_of}
    # Once for each time.
    assert len(said) == 2


def test_a_scheduler_without_workers(tmp_path):
    dask = Dask(tmp_path, workers=0)
    try:
        with pytest.raises(ClusterLostError, match="no worker"):
            DaskCluster(dask.address, 0, LIMITS, {}, patience=NO_WORKERS).__enter__()
    finally:
        dask.end()


def test_workers_of_this_machine_that_stay_away():
    ended = threading.Event()

    def kill():
        # At once, so that none gets as far as the scheduler: after the second time its nanny gives up.
        while not ended.wait(0.01):
            kill_children(signal.SIGKILL)

    with DaskCluster(None, 2, LIMITS, {}, judge=deadly) as cluster:
        killer = threading.Thread(target=kill)
        killer.start()
        cluster.patience = NO_WORKERS
        try:
            with pytest.raises(ClusterLostError, match="no worker"):
                answers(cluster, ("well",))
        finally:
            ended.set()
            killer.join()
    assert not children()


def test_workers_that_are_stopped_answer_nothing_and_end_with_us():
    with DaskCluster(None, 1, LIMITS, {}) as cluster:
        there = [child.pid for child in children()]
        kill_children(signal.SIGSTOP)
        cluster.patience = NO_ANSWERS
        with pytest.raises(ClusterLostError, match="no answer within 1 s"):
            cluster.host_key()
    assert there
    assert not outlived(*there)


def test_a_scheduler_that_is_stopped_is_lost(own_dask):
    with DaskCluster(own_dask.address, 0, LIMITS, {}, judge=deadly) as cluster:
        own_dask.scheduler.send_signal(signal.SIGSTOP)
        cluster.patience = NO_ANSWERS
        with pytest.raises(ClusterLostError, match="no answer within 1 s"):
            answers(cluster, ("well",))


def test_what_is_asked_answers_raises_or_is_late():
    assert within(60.0, lambda: "answer") == "answer"
    with pytest.raises(ZeroDivisionError):
        within(60.0, lambda: 1 / 0)
    never = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        within(0.01, never.wait)
    never.set()
