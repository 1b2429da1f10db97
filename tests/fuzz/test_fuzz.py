"""A part of ``make fuzz`` in every run of the tests; a case that was ever bad is asked again for good."""

from __future__ import annotations

import pytest

from tests.fuzz.cases import run_case
from tests.fuzz.run import fuzz

PARTS, CASES = 4, 30


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files_get_an_answer(part):
    bad = [(number, answer.words, answer.faults) for number, answer in fuzz(1, part * CASES, CASES) if answer.faults]
    assert not bad, f"python -m tests.fuzz.run --seed 1 --first N --cases 1: {bad}"


def test_the_cases_are_the_same_each_time():
    first, second = run_case(1, 3), run_case(1, 3)
    assert first.words == second.words
    assert first.status == second.status
