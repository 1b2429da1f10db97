"""The same fleet on a Dask cluster: a real scheduler and real workers, some of which are killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from aotidoctor.fleet.cluster import Cluster
from aotidoctor.fleet.pool import Answer, Job, Limits
from tests.optional import optional
from tests.unit.fleet.test_batch import environ, many, results, steady, words

optional("distributed")

pytestmark = pytest.mark.slow

ITEMS = 120
ALONE = ["--jobs", "2"]


class Dask:
    """A scheduler and two workers, as separate processes."""

    def __init__(self, folder):
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.workers = [self.worker(), self.worker()]
        self.address = json.loads(self._file.read_text())["address"]

    def _start(self, which, *more):
        command = [sys.executable, "-m", f"distributed.cli.dask_{which}", "--scheduler-file", str(self._file), *more]
        environment = {**environ(), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        process = subprocess.Popen(
            [*command, "--no-dashboard"], cwd=self._folder, env=environment,
            stdout=subprocess.DEVNULL, stderr=(self._folder / f"{which}.err").open("ab"),
        )  # fmt: skip
        while not self._file.exists():
            assert process.poll() is None, (self._folder / f"{which}.err").read_text()
            time.sleep(0.05)
        return process

    def worker(self):
        return self._start("worker", "--nthreads", "1", "--no-nanny")

    def end(self):
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    cluster = Dask(tmp_path_factory.mktemp("dask"))
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


# The command with less patience: how long it waits for somebody to answer is not asked here.
IMPATIENT = """
import sys
from aotidoctor.__main__ import main
from aotidoctor.fleet import cluster

cluster._CONNECT_S = 1.0
sys.exit(main())
"""


def test_nobody_at_the_address(place):
    asked = words("m", "-o", "nobody", "--json", "--scheduler", "tcp://127.0.0.1:9", cwd=place)
    assert asked[:3] == [sys.executable, "-m", "aotidoctor"]
    command = [sys.executable, "-c", IMPATIENT, *asked[3:]]
    done = subprocess.run(command, check=False, cwd=place, env=environ(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "more", [["--cluster", "local:0"], ["--cluster", "slurm:2"], ["--cluster", "local:1", "--scheduler", "tcp://x"]]
)
def test_what_cannot_be_meant_is_a_usage_error(place, more):
    running = start(place, "none", *more)
    running.communicate(timeout=60)
    assert running.returncode == 2


def deadly(messages, _settings, _limits):
    """One job takes its worker with it; of a pack, two at most are answered at a time."""
    if any(message["do"] == "die" for message in messages):
        os.kill(os.getpid(), signal.SIGKILL)
    return [Answer(job=Job(tag="", message={}), message={"did": message["do"]}) for message in messages[:2]]


def answers(cluster, tags):
    found = {}
    for tag in tags:
        cluster.submit(Job(tag=tag, message={"do": tag}))
    while cluster.pending:
        for answer in cluster.wait():
            assert answer.job.tag not in found
            found[answer.job.tag] = answer
    return found


def test_a_job_that_kills_its_worker_is_tried_once_more_and_then_reported():
    with Cluster(None, 2, Limits(seconds=60), {}, judge=deadly) as cluster:
        found = answers(cluster, ("well", "die", "also", "more"))
    assert {tag: one.lost for tag, one in found.items()} == {"well": None, "die": "killed", "also": None, "more": None}
    assert found["die"].attempts == 2


def test_the_rest_of_a_pack_goes_on_its_way_again():
    tags = [str(at) for at in range(70)]
    with Cluster(None, 1, Limits(seconds=60), {}, judge=deadly) as cluster:
        found = answers(cluster, tags)
    assert {tag: one.message["did"] for tag, one in found.items()} == {tag: tag for tag in tags}
