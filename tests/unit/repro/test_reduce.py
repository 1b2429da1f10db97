from __future__ import annotations

import math

import pytest

from aotidoctor.repro.reduce import element, extremes, halved, nested


@pytest.mark.parametrize(
    ("values", "places"),
    [([3, -1, 7, 2], [1, 2]), ([0.5, math.nan, 1.0], [1, 0, 2]), ([math.inf, -2.0], [0, 1, 1]), ([], [])],
)
def test_extremes_are_where_values_stand_out(values, places):
    assert list(extremes(values)) == places


@pytest.mark.parametrize("bad", [0, 7, 12, 99])
def test_halving_finds_the_one_element_that_matters(bad):
    asked = []

    def fails(chosen):
        asked.append(chosen)
        return bad in chosen

    assert halved(100, fails) == [bad]
    assert len(asked) <= 14


def test_two_elements_that_are_needed_together_are_kept_together():
    assert set(halved(16, lambda chosen: {2, 3} <= set(chosen))) == {2, 3}
    assert halved(16, lambda chosen: {2, 13} <= set(chosen)) == list(range(16))


def test_places_and_nested_lists():
    assert element((4, 8), 9) == "[1, 1]"
    assert element((), 0) == "[()]"
    assert nested([1, 2, 3, 4], (2, 2)) == "[[1, 2], [3, 4]]"
    assert nested([5], ()) == "5"
