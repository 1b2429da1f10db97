"""``aotidoctor classify`` against ``grep -E`` with the same words, on the same 100 MB. Nothing is asserted about time."""

from __future__ import annotations

import random
import sys

import pytest

from aotidoctor.logs.prefilter import BROAD
from tests.bench.conftest import MEDIANS

pytestmark = pytest.mark.bench

SIZE = 100_000_000
FAILURE = (
    "Error: CUDA driver error: file not found\n"
    "Traceback (most recent call last):\n"
    '  File "/app/run.py", line 11, in <module>\n'
    "    output = model(x)\n"
    "RuntimeError: run_func_( container_handle_) API call failed at model_container_runner.cpp, line 111\n"
)
WORDS = [
    "step",
    "loss",
    "epoch",
    "lr",
    "batch",
    "loaded",
    "model",
    "worker",
    "gpu",
    "memory",
    "cache",
    "tensor",
    "compile",
    "kernel",
    "request",
    "served",
    "latency",
    "ms",
    "queue",
    "token",
    "data",
    "shard",
    "optimizer",
    "grad",
    "norm",
    "checkpoint",
    "saved",
    "time",
]
GREP = "|".join(word.replace("(", "\\(") for word in BROAD)


def noise(number, rng):
    words = " ".join(f"{rng.choice(WORDS)}={rng.random():.4f}" for _ in range(6))
    return f"2026-01-01T10:{number // 60 % 60:02d}:{number % 60:02d} INFO trainer.py:{number % 500}] {words}\n"


def written(path, lines):
    with path.open("w") as file:
        size = 0
        for line in lines:
            file.write(line)
            size += len(line)
            if size >= SIZE:
                return str(path)
    raise AssertionError


def noisy():
    rng = random.Random(1)
    for number in range(10**9):
        yield noise(number, rng)
        if number == 400_000:
            yield FAILURE


def failing():
    for number in range(10**9):
        yield f"2026-01-01 00:00:{number % 60:02d},{number % 1000:03d} ERROR worker {number} failed\n{FAILURE}"


LOGS = {"noise": noisy, "errors": failing}


@pytest.fixture(scope="module", params=LOGS)
def log(request, tmp_path_factory):
    return request.param, written(tmp_path_factory.mktemp("logs") / f"{request.param}.log", LOGS[request.param]())


def test_grep(stopwatch, log):
    name, path = log
    stopwatch(f"grep, 100 MB of {name}", "grep", "-cE", GREP, path)


def test_classify(stopwatch, log):
    name, path = log
    command = (sys.executable, "-m", "aotidoctor", "classify", path, "--format", "json")
    stopwatch(f"classify, 100 MB of {name}", *command, statuses=(1,), rounds=3)
    assert MEDIANS
