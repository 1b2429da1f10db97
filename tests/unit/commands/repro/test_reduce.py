from __future__ import annotations

import math

import pytest

from aotidoctor.commands.repro.reduced_inputs import (
    element_index,
    extreme_elements,
    nested_list,
    reduce_inputs,
    smallest_failing_half,
)
from aotidoctor.commands.repro.repro_script import Recipe
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import Container, InputSet, Leaf, TensorDesc


@pytest.mark.parametrize(
    ("values", "places"),
    [([3, -1, 7, 2], [1, 2]), ([0.5, math.nan, 1.0], [1, 0, 2]), ([math.inf, -2.0], [0, 1, 1]), ([], [])],
)
def test_extremes_are_where_values_stand_out(values, places):
    assert list(extreme_elements(values)) == places


@pytest.mark.parametrize("bad", [0, 7, 12, 99])
def test_halving_finds_the_one_element_that_matters(bad):
    asked = []

    def fails(chosen):
        asked.append(chosen)
        return bad in chosen

    assert smallest_failing_half(100, fails) == [bad]
    assert len(asked) <= 14


def test_two_elements_that_are_needed_together_are_kept_together():
    assert set(smallest_failing_half(16, lambda chosen: {2, 3} <= set(chosen))) == {2, 3}
    assert smallest_failing_half(16, lambda chosen: {2, 13} <= set(chosen)) == list(range(16))


def test_places_and_nested_lists():
    assert element_index((4, 8), 9) == "[1, 1]"
    assert element_index((), 0) == "[()]"
    assert nested_list([1, 2, 3, 4], (2, 2)) == "[[1, 2], [3, 4]]"
    assert nested_list([5], ()) == "5"


def leaf(values, dtype="int64"):
    shape = (len(values),)
    return Leaf(value=TensorDesc(dtype=dtype, shape=shape, stride=(1,), elements=lambda: values))


def inputs(*leaves):
    args, kwargs = Container(type="tuple", children=leaves), Container(type="dict", children=())
    return InputSet(path="x.pt", format="pt", form="args", args=args, kwargs=kwargs)


class Bench:
    """Fails where ``fails`` says so of the script's inputs, as text."""

    def __init__(self, fails):
        self.fails, self.tried = fails, []

    def fails_alike(self, recipe, what):
        self.tried.append(what)
        return self.fails(" ".join((recipe.args, *recipe.patches)))


def reduced(fails, *findings):
    given = inputs(leaf([1] * 40), leaf([5, 7, 900, *range(200)]))
    bench = Bench(fails)
    return reduce_inputs(bench, Recipe(title="x"), given, (), findings), bench.tried


BLAMED = Evidence(
    code="AD-RUN-022",
    kind="index",
    severity=Severity.INFO,
    subject="args[1]",
    observed="",
    expected="",
    facts={"path": "args[1]", "element": "args[1][2]", "value": 900, "index": (2,)},
)


def test_no_value_is_taken_where_none_is_needed():
    found, tried = reduced(lambda text: True)
    assert found.recipe.patches == ()
    assert found.recipe.values is None
    assert len(tried) == 1


def test_the_element_that_is_blamed_comes_first():
    found, tried = reduced(lambda text: "args[1][2] = 900" in text, BLAMED)
    assert found.recipe.patches == ("args[1][2] = 900",)
    assert found.text == "made up, except for args[1][2]"
    assert len(tried) == 2


def test_without_blame_the_extremes_are_tried():
    found, _ = reduced(lambda text: "args[1][2] = 900" in text)
    assert found.recipe.patches == ("args[1][2] = 900",)


def test_one_whole_tensor_before_all_of_them():
    found, _ = reduced(lambda text: 'given["args[1]"]' in text)
    assert found.values == ("args[1]",)
    assert 'given["args[0]"]' not in found.recipe.args
    both, _ = reduced(lambda text: text.count("given[") == 2)
    assert both.text == "all of your tensors"
    assert reduced(lambda text: False)[0] is None


def test_of_a_small_tensor_the_values_that_are_needed_together():
    values = [9, 8, 7, 6, 5, 4, 3, 2]

    def fails(text):
        return "torch.tensor(" in text or ("args[0][1] = 8" in text and "args[0][2] = 7" in text)

    found = reduce_inputs(Bench(fails), Recipe(title="x"), inputs(leaf(values)), (), ())
    assert found.recipe.patches == tuple(f"args[0][{at}] = {values[at]}" for at in range(4))


def test_a_small_tensor_whole_where_many_values_are_needed():
    found = reduce_inputs(
        Bench(lambda text: "torch.tensor(" in text), Recipe(title="x"), inputs(leaf([*range(30)])), (), ()
    )
    assert found.recipe.args == f"(torch.tensor({[*range(30)]}, dtype=torch.int64),)"
