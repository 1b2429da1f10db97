"""Call specs that cannot be call specs, and odd contexts."""

import json

import pytest

from aotidoctor.model.inputs import Container, Leaf, SpecError, count_leaves, parse_call, parse_spec

LEAF = {"type": None, "context": None, "children_spec": []}


def spec(kind, context, *children):
    return {"type": kind, "context": context, "children_spec": list(children)}


def dumped(tree):
    return json.dumps([1, tree])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[2, {}]",
        "[1, 3]",
        '[1, {"type": null}]',
        "[" * 50000,
        dumped({"type": 3, "children_spec": [LEAF]}),
    ],
)
def test_not_a_spec(text):
    with pytest.raises(SpecError):
        parse_spec(text)


def test_deep_nesting_is_refused_not_a_crash():
    text = "[1, " + '{"type": "builtins.list", "context": "null", "children_spec": [' * 3000 + "]}" * 3000 + "]"
    with pytest.raises(SpecError):
        parse_spec(text)


def test_a_bare_leaf():
    assert parse_spec(dumped(LEAF)) == Leaf(value=0)


def test_args_must_come_with_kwargs():
    with pytest.raises(SpecError):
        parse_call(dumped(spec("builtins.tuple", "null", LEAF)))


def test_keys_that_do_not_fit_the_children_are_left_out():
    tree = parse_spec(dumped(spec("builtins.dict", '["a"]', LEAF, LEAF)))
    assert isinstance(tree, Container)
    assert tree.keys == ()
    assert count_leaves(tree) == 2


@pytest.mark.parametrize(
    ("context", "keys"),
    [
        ('[{"__enum__": true, "fqn": "m:Color", "name": "RED"}]', ("RED",)),
        ("[null]", ("None",)),
        ("[true]", ("True",)),
        ("[1.5]", ("1.5",)),
        ('[["x"]]', ('["x"]',)),
    ],
)
def test_keys_of_other_types_become_text(context, keys):
    assert parse_spec(dumped(spec("builtins.dict", context, LEAF))).keys == keys


def test_an_unknown_type_keeps_its_name():
    tree = parse_spec(dumped(spec("lab.Thing", "not json", LEAF)))
    assert (tree.type, tree.keys) == ("lab.Thing", ())
