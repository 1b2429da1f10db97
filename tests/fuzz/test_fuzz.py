"""A part of ``make fuzz`` in every run of the tests; a case that was ever bad is asked again for good."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.cases import run_case

ROOT = Path(__file__).parents[2]
PARTS, CASES = 2, 40


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files_get_an_answer(part):
    # In a process of its own: a fork counts the memory of the process that it comes from.
    words = ["--seed", "1", "--first", str(part * CASES), "--cases", str(CASES)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.run", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"python -m tests.fuzz.run {' '.join(words)}: {done.stdout}{done.stderr}"


def test_the_cases_are_the_same_each_time():
    first, second = run_case(1, 3), run_case(1, 3)
    assert first.words == second.words
    assert first.status == second.status
