"""Programs under watch against the same programs alone, in one run. Nothing is asserted about time."""

from __future__ import annotations

import sys

import pytest

from tests.bench.test_ratios import PLAIN

pytestmark = [pytest.mark.bench]

WATCH = (sys.executable, "-m", "aotidoctor", "watch", "--")
# About two seconds of arithmetic, in which nothing is written.
COMPUTE = (sys.executable, "-c", "n = 0\nfor i in range(30_000_000): n += i")
# 100 MB into a pipe, in the blocks that a program's stdout has.
FLOOD = ("sh", "-c", "head -c 100000000 /dev/zero | cat")
LINES = (
    sys.executable,
    "-c",
    "import sys\nfor i in range(200_000): sys.stdout.write('a line of a log %d\\n' % i); sys.stdout.flush()",
)


@pytest.mark.parametrize("under", ["alone", "watched"])
@pytest.mark.parametrize(("name", "command"), [("compute", COMPUTE), ("100 MB", FLOOD), ("200,000 lines", LINES)])
def test_programs(stopwatch, under, name, command):
    stopwatch(f"{name}, {under}", *(WATCH if under == "watched" else ()), *command)


@pytest.mark.torch
@pytest.mark.parametrize("under", ["alone", "watched"])
def test_load_and_run(stopwatch, kit, under):
    program = (sys.executable, "-c", PLAIN, str(kit.package("mlp")), str(kit.sample_path("mlp")))
    stopwatch(f"load+run, {under}", *(WATCH if under == "watched" else ()), *program)
