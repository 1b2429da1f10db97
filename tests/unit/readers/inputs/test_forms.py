"""Which call a saved object means, with and without the call spec."""

import pytest

from aotidoctor.model.inputs import Container, Leaf, argument_steps, walk_call
from aotidoctor.readers.inputs.saved_calls import arrange, build_plan, graft, plan_to_json


def tree(value):
    if isinstance(value, dict):
        return Container(type="dict", children=tuple(map(tree, value.values())), keys=tuple(value))
    if isinstance(value, (tuple, list)):
        return Container(type=type(value).__name__, children=tuple(map(tree, value)))
    return Leaf(value=value)


def call(value, *, expected=None, flat=False):
    """Form, ``{path: leaf}`` and number of notes of the reading of ``value``."""
    spec = None if expected is None else (tree(expected[0]), tree(expected[1]))
    root = tree(value)
    arranged = arrange(root, flat=flat, expected=spec)
    leaves = dict(walk_call(graft(arranged.args, root), graft(arranged.kwargs, root)))
    return arranged.form, leaves


@pytest.mark.parametrize(
    ("value", "form", "leaves"),
    [
        ((1, 2), "args", {"args[0]": 1, "args[1]": 2}),
        ([1], "args", {"args[0]": 1}),
        (1, "tensor", {"args[0]": 1}),
        (((1,), {"a": 2}), "pair", {"args[0]": 1, "kwargs['a']": 2}),
        (((1, 2), {}), "pair", {"args[0]": 1, "args[1]": 2}),
        (([1], {"a": 2}), "pair", {"args[0]": 1, "kwargs['a']": 2}),
        ([(1,), {"a": 2}], "args", {"args[0][0]": 1, "args[1]['a']": 2}),
        (((1,), {3: 2}), "args", {"args[0][0]": 1, "args[1][3]": 2}),
        ((1, {"a": 2}), "args", {"args[0]": 1, "args[1]['a']": 2}),
        ({"args": (1,), "kwargs": {"a": 2}}, "args-kwargs", {"args[0]": 1, "kwargs['a']": 2}),
        ({"args": [1]}, "args-kwargs", {"args[0]": 1}),
        ({"kwargs": {"a": 2}}, "args-kwargs", {"kwargs['a']": 2}),
        ({"args": 1}, "kwargs", {"kwargs['args']": 1}),
        ({"args": (1,), "x": 2}, "kwargs", {"kwargs['args'][0]": 1, "kwargs['x']": 2}),
        ({"a": 1}, "kwargs", {"kwargs['a']": 1}),
        ({3: 1}, "args", {"args[0][3]": 1}),
        ({"arr_1": 1, "arr_0": 2}, "named", {"args[0]": 2, "args[1]": 1}),
        ((), "args", {}),
        ({}, "kwargs", {}),
    ],
)
def test_without_call_spec(value, form, leaves):
    assert call(value) == (form, leaves)


@pytest.mark.parametrize(
    ("value", "expected", "form"),
    [
        (([1, 2], {"a": 3}), (([0, 0], {"a": 0}), {}), "args"),
        (([1, 2], {"b": 3}), (([0, 0], {"a": 0}), {}), "args"),
        (([1, 2], {"a": 3}), ((0, 0), {"a": 0}), "pair"),
        (((1,), {"wrong": 3}), ((0,), {"a": 0}), "pair"),
        # An argument is missing, or is given by keyword: still a pair.
        (((1,), {}), ((0, 0), {}), "pair"),
        (((1,), {"y": 2}), ((0, 0), {}), "pair"),
        (((1, 2, 3), {}), ((0, 0), {}), "pair"),
        (((1, [2]), {"scale": 3}), ((0, [0, 0]), {"scale": 0, "shift": 0}), "pair"),
        (([1], {"a": 3}), (([0, 0], {"a": 0}), {}), "args"),
        (([1, 2], {}), (([0, 0], {"a": 0}), {}), "args"),
        ({"a": 1}, (({"a": 0, "b": 0},), {}), "args"),
        ({"a": 1, "b": 2}, (({"a": 0, "b": 0},), {}), "args"),
        ({"a": 1, "b": 2}, ((), {"b": 0, "a": 0}), "kwargs"),
        ({"a": 1, "c": 2}, ((), {"b": 0, "a": 0}), "kwargs"),
        ({"args": [1]}, ((), {"args": [0]}), "kwargs"),
    ],
)
def test_call_spec_decides_between_readings(value, expected, form):
    assert call(value, expected=expected)[0] == form


@pytest.mark.parametrize(
    ("names", "expected", "paths"),
    [
        (["x", "mask"], None, ["kwargs['x']", "kwargs['mask']"]),
        (["mask", "x"], ((0,), {"mask": 0}), ["args[0]", "kwargs['mask']"]),
        (["b", "a"], ((0, 0), {}), ["args[0]", "args[1]"]),
        (["a", "b"], ((), {"b": 0, "c": 0}), ["kwargs['a']", "kwargs['b']"]),
        (["args.0", "args[1]['k']", "args.1.j", "kwargs.m"], None,
         ["args[0]", "args[1]['k']", "args[1]['j']", "kwargs['m']"]),
        (["args[0][1]", "args[0][0]"], None, ["args[0][0]", "args[0][1]"]),
        (["arr_0", "mask"], ((0, ), {"mask": 0}), ["args[0]", "kwargs['mask']"]),
    ],
)  # fmt: skip
def test_flat_names(names, expected, paths):
    form, leaves = call(dict.fromkeys(names, 1), expected=expected, flat=True)
    assert (form, list(leaves)) == ("named", paths)


def test_the_reading_of_what_has_two_is_noted():
    for wanted in ((0, 0), ([0], {"a": 0})):
        arranged = arrange(tree(([1], {"a": 2})), expected=(tree(wanted), tree({})))
        assert any("(args, kwargs)" in note for note in arranged.notes)


def test_positional_order_by_file_is_noted():
    root = tree({"b": 1, "a": 2})
    arranged = arrange(root, flat=True, expected=(tree((0, 0)), tree({})))
    assert any("b, a" in note for note in arranged.notes)


def test_nested_names_take_the_expected_container():
    root = tree({"args[0][0]": 1, "args[0][1]": 2})
    arranged = arrange(root, flat=True, expected=(tree(((0, 0),)), tree({})))
    assert arranged.args.children[0].type == "tuple"


@pytest.mark.parametrize(
    "name", ["args", "args.x", "kwargs.0", "arguments[0]", "args[", "args[0]!", "layer.0.weight", ""]
)
def test_names_that_are_no_paths(name):
    assert argument_steps(name) is None


@pytest.mark.parametrize("value", [(1, [2, {"a": 3}]), {"args": (1,), "kwargs": {"a": 2}}, {"args[0]['k']": 1}, 5])
def test_plan_gives_the_same_call(value):
    root = tree(value)
    arranged = arrange(root)
    plan = plan_to_json(arranged)

    def pick(place):
        found = value
        for index in place:
            found = list(found.values())[index] if isinstance(found, dict) else found[index]
        return found

    def make(kind, children, keys):
        return (
            dict(zip(keys, children, strict=True)) if kind == "dict" else {"tuple": tuple, "list": list}[kind](children)
        )

    args, kwargs = build_plan(plan["args"], make, pick), build_plan(plan["kwargs"], make, pick)
    wanted = dict(walk_call(graft(arranged.args, root), graft(arranged.kwargs, root)))
    assert dict(walk_call(tree(args), tree(kwargs))) == wanted


def test_kwargs_that_hold_no_names_are_an_argument():
    assert call({"args": (1,), "kwargs": 2}) == ("kwargs", {"kwargs['args'][0]": 1, "kwargs['kwargs']": 2})
    assert call({"args": (1,), "kwargs": {3: 2}})[0] == "kwargs"


def test_a_plan_is_applied_as_it_is_written():
    plan = {"list": [{"place": [0]}, {"tuple": [{"dict": [["a", {"place": [1, 2]}], [3, {"place": []}]]}]}]}
    made = build_plan(plan, lambda kind, children, keys: (kind, children, keys), lambda place: place)
    assert made == ("list", [(0,), ("tuple", [("dict", [(1, 2), ()], ["a", 3])], [])], [])


@pytest.mark.parametrize("plan", [None, {"set": []}, {"list": 3}, {"place": 0}, []])
def test_what_is_no_plan(plan):
    with pytest.raises(ValueError, match="not a plan"):
        build_plan(plan, lambda *_: None, lambda place: place)
