"""Fixtures and the closing table of the benchmarks: every number is a ratio to plain torch in the same run.

Two of them: of the medians of the wall clock, as a user waits, and of the least processor time (user and system, with
children), which other load on the machine moves less.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from foundry.cases import Kit

from tests.e2e.conftest import packages  # noqa: F401 - a fixture

CUDA = sorted(path.stem for path in Path(__file__).parents[1].joinpath("data", "cuda").glob("*.pt2"))
PLAIN = "plain load+run"
MEDIANS: dict[str, float] = {}
CPU: dict[str, float] = {}
MEMORY: dict[str, int] = {}
# Size of model -> command -> ratios to plain torch (wall, cpu, memory) and seconds.
SIZED: dict[str, dict[str, dict[str, float]]] = {}
# What the ratios of the wall clock should stay below at every size, and those of memory for all commands.
SIZED_AIMS = {
    "check": 0.04,
    "inspect": 0.04,
    "run": 0.45,
    "run --reference": 1.0,
    "compare": 1.2,
    **dict.fromkeys(("run, bad dtype", "run, index out of range", "run, kernel crash"), 0.5),
}
MEMORY_AIM = 1.2
# Name, what it is compared with, what it should stay below.
RATIOS = (
    ("import torch", "plain load+run", None),
    ("direct loader", "plain load+run", None),
    ("check", "plain load+run", 0.045),
    ("check", "import torch", None),
    ("inspect", "plain load+run", 0.06),
    ("compat, ten hosts", "check", 1.3),
    ("triton", "plain load+run", 0.06),
    *((f"check cuda {name}", "plain load+run", 0.06) for name in CUDA),
    *((f"inspect cuda {name}", "plain load+run", 0.06) for name in CUDA),
    ("run, healthy", "plain load+run", 0.6),
    ("run, failing, all probes", "plain load+run", 1.2),
    ("run, crash", "plain load+run", 1.2),
    ("inspect 2 GB", "inspect", 1.15),
    ("classify, 100 MB of noise", "grep, 100 MB of noise", 8),
    ("classify, 100 MB of errors", "grep, 100 MB of errors", 8),
    ("validator, demo", "call, demo", None),
    ("calls, traced", "calls, untraced", 1.1),
    ("load and call, traced", "load and call", 1.1),
    ("compute, watched", "compute, alone", 1.1),
    ("load+run, watched", "load+run, alone", 1.1),
    ("100 MB, watched", "100 MB, alone", None),
    ("200,000 lines, watched", "200,000 lines, alone", None),
)


class Stopwatch:
    """Times a command by pytest-benchmark and keeps its median for the ratios."""

    def __init__(self, benchmark):
        self.benchmark = benchmark

    def __call__(self, name, *command, rounds=5, statuses=(0,)):
        # Compiled bytecode is what an installed program has.
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        spent = []

        def once():
            before = _children_cpu()
            done = subprocess.run(command, capture_output=True, check=False, env=environ)
            spent.append(_children_cpu() - before)
            assert done.returncode in statuses, done.stderr[-2000:]

        self.benchmark.pedantic(once, rounds=rounds, warmup_rounds=1, iterations=1)
        MEDIANS[name], CPU[name] = statistics.median(self.benchmark.stats.stats.data), min(spent)
        if PLAIN in MEDIANS:
            self.benchmark.extra_info["ratio"] = round(MEDIANS[name] / MEDIANS[PLAIN], 4)
            self.benchmark.extra_info["cpu_ratio"] = round(CPU[name] / CPU[PLAIN], 4)


def _children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    """The tests tell torch what it would ask of the CPU by compiling; a plain load has to ask."""
    monkeypatch.delenv("TORCHINDUCTOR_VEC_ISA_OK", raising=False)


@pytest.fixture
def stopwatch(benchmark):
    return Stopwatch(benchmark)


@pytest.fixture(scope="session")
def kit(packages: Kit) -> Kit:  # noqa: F811 - asks for the fixture
    return packages


def _time(seconds):
    return f"{seconds:7.3f} s" if seconds >= 0.001 else f"{seconds * 1e6:6.2f} µs"


def pytest_terminal_summary(terminalreporter):
    if SIZED:
        title = "models of real size: ratios to plain load+run, each round by itself"
        terminalreporter.section(f"{title} (aim of memory: at most {MEMORY_AIM})")
    for size, commands in SIZED.items():
        for name, ratio in commands.items():
            told = "  ".join(f"{what} {ratio[what]:6.3f}" for what in ("wall", "cpu", "memory"))
            aim = f"  (aim of wall: at most {SIZED_AIMS[name]})" if name in SIZED_AIMS else ""
            terminalreporter.write_line(f"{size:8} {name:24} {ratio['seconds']:7.2f} s  {told}{aim}")
    if not MEDIANS:
        return
    terminalreporter.section("ratios in this run")
    for name, base, target in RATIOS:
        if name in MEDIANS and base in MEDIANS:
            ratio = MEDIANS[name] / MEDIANS[base]
            aim = f"   (aim: at most {target})" if target is not None else ""
            cpu = f", {CPU[name] / CPU[base]:6.3f} of its processor time" if name in CPU and base in CPU else ""
            terminalreporter.write_line(f"{name:26} {_time(MEDIANS[name])} = {ratio:6.3f} x {base}{cpu}{aim}")
    for name, kib in MEMORY.items():
        terminalreporter.write_line(f"{name:26} {kib / 1024:7.1f} MiB peak")
