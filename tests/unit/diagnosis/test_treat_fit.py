"""A call brought into the form of the call spec: by key, by position, by elimination, never by a guess."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.treat_tensors import assign
from tests.unit.checks.input_builders import CONSTANT, Spec, call, contract_of, tensor

F8, F4, I4 = Spec(8), Spec(4), Spec(4, dtype="int64")
T8, T4, L4 = tensor(8), tensor(4), tensor(4, dtype="int64")


def leaf(path):
    return {"leaf": path}


def fitted(contract, inputs):
    found = assign(contract, inputs)
    return None if found is None else (found.args["tuple"], dict(map(tuple, found.kwargs["dict"])))


@pytest.mark.parametrize(
    ("contract", "inputs", "args"),
    [
        (contract_of(F8, I4), call(a=T8, b=L4), ["kwargs['a']", "kwargs['b']"]),
        (contract_of(F8, I4), call(b=L4, a=T8), ["kwargs['a']", "kwargs['b']"]),
        (contract_of(F8, F4), call(T8, T4, L4), ["args[0]", "args[1]"]),
        (contract_of(F8, F4), call(T8, q=L4, p=T4), ["args[0]", "kwargs['p']"]),
        (contract_of(F8), call([T8]), ["args[0][0]"]),
        (contract_of(F8), call({"x": T8}), ["args[0]['x']"]),
    ],
    ids=["in order", "by what fits", "too many", "one of two", "out of a list", "out of a dict"],
)
def test_positional_arguments(contract, inputs, args):
    assert fitted(contract, inputs) == (list(map(leaf, args)), {})


def test_keywords_out_of_other_keywords_and_of_positions():
    contract = contract_of(x=F8, ids=I4)
    expected = ([], {"x": leaf("kwargs['y']"), "ids": leaf("kwargs['ids']")})
    assert fitted(contract, call(y=T8, ids=L4)) == expected
    assert fitted(contract, call(L4, T8)) == ([], {"x": leaf("args[1]"), "ids": leaf("args[0]")})


def test_two_that_fit_one_place_are_a_guess():
    assert assign(contract_of(F8, F4), call(T8, p=T4, q=tensor(4))) is None


def test_what_is_not_used_is_named():
    assert assign(contract_of(F8), call(T8, L4, q=T4)).dropped == ["args[1]", "kwargs['q']"]
    assert assign(contract_of(F8, CONSTANT), call(T8, T4)).dropped == ["args[1]"]


def test_a_container_of_one_is_put_around_or_taken_off():
    ((found,), _) = fitted(contract_of([F8]), call(T8))
    assert found == {"list": [leaf("args[0]")]}


def test_containers_are_told_apart_by_what_they_hold():
    contract = contract_of([F8, F4], [I4, I4])
    (args, _) = fitted(contract, call(b=[L4, L4], a=[T8, T4]))
    assert args == [
        {"list": [leaf("kwargs['a'][0]"), leaf("kwargs['a'][1]")]},
        {"list": [leaf("kwargs['b'][0]"), leaf("kwargs['b'][1]")]},
    ]


def test_lists_of_numbers_are_the_tensor_that_they_spell():
    contract = contract_of(F8, Spec(2, 2, dtype="int64"))
    (args, _) = fitted(contract, call(b=[[1, 2], [3, 4]], a=T8))
    assert args == [leaf("kwargs['a']"), {"tensor_of": "kwargs['b']", "dtype": "int64"}]
    assert fitted(contract_of(Spec(3)), call([1, 2, 3])) == ([{"tensor_of": "args[0]", "dtype": "float32"}], {})


@pytest.mark.parametrize("given", [[[1, 2], [3]], [1, "x", 3], [], [1, 2]], ids=["ragged", "text", "none", "too few"])
def test_lists_that_spell_no_such_tensor(given):
    assert fitted(contract_of(Spec(3)), call(given)) is None


def test_a_hole_at_the_end_is_left_and_a_constant_is_filled_in():
    found = assign(contract_of(F8, CONSTANT, F4), call(T8))
    assert (found.args["tuple"], [hole.path for hole in found.holes]) == (
        [leaf("args[0]"), {"value": None}],
        ["args[2]"],
    )


@pytest.mark.parametrize(
    ("contract", "inputs"),
    [
        (contract_of(F8, [F4, F4]), call(T8)),
        (contract_of([F8, F4]), call([T8])),
        (contract_of([F8, F4]), call(T8)),
        (contract_of(F8), call([T8, T4])),
    ],
    ids=["a container is missing", "a part is missing", "one for two", "two for one"],
)
def test_what_cannot_be_put_together(contract, inputs):
    assert assign(contract, inputs) is None


def test_what_is_too_much_inside_of_a_container_is_left_out():
    found = assign(contract_of(F4, x=[F8, F8]), call(T4, x=[T8, T8, T8], y=L4))
    assert sorted(found.dropped) == ["kwargs['x'][2]", "kwargs['y']"]
    assert found.kwargs["dict"] == [["x", {"list": [leaf("kwargs['x'][0]"), leaf("kwargs['x'][1]")]}]]


def test_without_a_call_spec_nothing_is_put_together():
    assert assign(replace(contract_of(F8), args=None), call(T8)) is None
    assert assign(replace(contract_of(F8), kwargs=None), call(T8)) is None
