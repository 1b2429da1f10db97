"""aotidoctor against plain torch on models of 1.5, 100 and 450 MB, each as a command of its own, taken in turns.

Nothing is asserted about time; that each command gives the answer it should is, since a wrong one may well be quick.
``AOTIDOCTOR_BENCH_ROUNDS`` is the number of rounds (3 without it).
"""

from __future__ import annotations

import fcntl
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from foundry.place import cache_dir

from tests.bench import real_size
from tests.bench.conftest import SIZED
from tests.bench.measure import peak_memory, timed
from tests.bench.test_ratios import DOCTOR, PLAIN

pytestmark = [pytest.mark.bench, pytest.mark.torch]

ROUNDS = int(os.environ.get("AOTIDOCTOR_BENCH_ROUNDS", "3"))
# Name -> words after the program's name ({package}, {bare}, {sample}... are files), what the first cause has to be.
COMMANDS = {
    "check": ("check {package} -i {sample}", None),
    "inspect": ("inspect {package}", None),
    "run": ("run {package} -i {sample}", None),
    "run --reference": ("run {package} -i {sample} --reference {exported}", None),
    "run, bad dtype": ("run {package} -i {narrow}", "input-dtype"),
    "run, index out of range": ("run {package} -i {range}", "index-out-of-range"),
    "run, kernel crash": ("run {bare} -i {wild}", "index-out-of-range"),
    "compare": ("compare {package} -i {sample} --reference {exported}", None),
    "localize": ("localize {package} -i {range}", "index-out-of-range"),
}


@pytest.fixture(scope="module")
def models():
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock-real-size").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = real_size.missing(cache)
        if missing:
            subprocess.run([sys.executable, real_size.__file__, str(cache), *missing], check=True)
    return cache


def commands(cache, size):
    """Name -> words of the whole command, and the cause that it has to name first."""
    room = real_size.folder(cache, size)
    bare = real_size.folder(cache, f"{size}-bare") / "model.pt2"
    files = {name: str(room / f"{name}.pt") for name in ("sample", "narrow", "range", "wild")}
    files |= {"package": str(room / "model.pt2"), "exported": str(room / "exported.pt2"), "bare": str(bare)}
    made = {"plain": ((sys.executable, "-c", PLAIN, files["package"], files["sample"]), None)}
    for name, (words, cause) in COMMANDS.items():
        options = (word.format(**files) for word in words.split())
        made[name] = ((*DOCTOR, *options, "--format", "json"), cause)
    return made


def right(name, spent, cause):
    if name == "plain":
        return spent.status == 0
    report = json.loads(spent.stdout)
    named = [item["cause"] for item in report["diagnoses"]]
    return named[:1] == ([cause] if cause else []) and (cause is not None or report["verdict"] == "healthy")


def measured(made, *, rounds):
    """Name -> ratios of wall clock, processor time and memory to plain torch: in turns, each round by itself."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    walls, cpus = {name: [] for name in made}, {name: [] for name in made}
    for number in range(rounds + 1):
        for name, (command, cause) in made.items():
            spent = timed(command, environ)
            assert right(name, spent, cause), f"{name}: {spent.stdout[-2000:]!r}"
            if number:  # The first one fills the caches of the disk.
                walls[name].append(spent.wall)
                cpus[name].append(spent.cpu)
    memory = {name: peak_memory(command, environ) for name, (command, _) in made.items()}
    return {
        name: {
            "wall": statistics.median(mine / plain for mine, plain in zip(walls[name], walls["plain"], strict=True)),
            "cpu": min(cpus[name]) / min(cpus["plain"]),
            "memory": memory[name] / memory["plain"],
            "seconds": statistics.median(walls[name]),
        }
        for name in made
    }


@pytest.mark.parametrize("size", real_size.SIZES)
def test_real_size(benchmark, models, size):
    made = commands(models, size)
    SIZED[size] = benchmark.pedantic(lambda: measured(made, rounds=ROUNDS), rounds=1)
    assert Path(made["plain"][0][3]).is_file()
