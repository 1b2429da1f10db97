"""The call spec as the backend parses it: names in order, and everything that it cannot parse."""

from __future__ import annotations

import json

import pytest

from aotidoctor.triton.call_spec import input_names, output_names, parse_inputs, parse_outputs
from tests.unit.triton.specs import T, call, dic, lis, node, ordered, spec, tup


def inputs(text: str) -> list[tuple[str, str]]:
    parsed = parse_inputs(text)
    assert not parsed.failures
    return [(item.name, item.node.path) for item in input_names(parsed.root)]


def outputs(tree: object) -> list[str]:
    parsed = parse_outputs(spec(tree))
    assert not parsed.failures
    return [item.name for item in output_names(parsed.root)]


def test_names_go_depth_first_in_the_order_of_insertion():
    text = call(T, dic({"b": T, "a": lis(T, T)}), tup(T), mask=T, bias=T)
    assert inputs(text) == [
        ("ARGS[0]", "args[0]"),
        ("ARGS[1][b]", "args[1]['b']"),
        ("ARGS[1][a][0]", "args[1]['a'][0]"),
        ("ARGS[1][a][1]", "args[1]['a'][1]"),
        ("ARGS[2][0]", "args[2][0]"),
        ("KWARGSmask", "kwargs['mask']"),
        ("KWARGSbias", "kwargs['bias']"),
    ]


def test_keywords_are_not_looked_into():
    assert inputs(call(T, opts=dic({"a": T, "b": T}), bias=T)) == [
        ("ARGS[0]", "args[0]"),
        ("KWARGSopts", "kwargs['opts']"),
        ("KWARGSbias", "kwargs['bias']"),
    ]


def test_an_empty_dict_has_a_name_and_an_empty_kwargs_has_none():
    assert [name for name, _ in inputs(call(T, dic({})))] == ["ARGS[0]", "ARGS[1]"]


def test_results():
    assert outputs(T) == ["RESULT"]
    assert outputs(tup(T)) == ["RESULT[0]"]
    assert outputs(dic({"y": T, "x": tup(T, T)})) == ["RESULT[y]", "RESULT[x][0]", "RESULT[x][1]"]
    assert outputs(dic({})) == ["RESULT"]


@pytest.mark.parametrize(
    ("tree", "rule", "path", "words"),
    [
        (tup(tup(ordered({"a": T})), dic({})), "R9", "args[0]", "('collections.OrderedDict') is unsupported"),
        (tup(tup(node("collections.namedtuple", [T], "Point")), dic({})), "R9", "args[0]", "is unsupported"),
        (tup(tup(), dic({"x": T})), "R10", "args", "must have at least one entry"),
        (tup(tup(T, dic({"k": lis()})), dic({})), "R10", "args[1]['k']", "must have at least one entry"),
        (tup(tup(dic({0: T})), dic({})), "R11", "args[0]", "Context entry at index 0 is not a string."),
        (tup(tup(T)), "R9", "inputs", "two children, but got 1"),
        (lis(tup(T), dic({})), "R9", "inputs", 'type "list"'),
        (tup(lis(T), dic({})), "R9", "inputs", "got [list, dict]"),
        (tup(tup({**dic({"a": T}), "context": '["a", "b"]'}), dic({})), "R9", "args[0]", "does not match number"),
        (tup(tup({**dic({"a": T}), "context": '{"a": 1}'}), dic({})), "R9", "args[0]", "as JSON array"),
        (tup(tup(T, 3), dic({})), "R9", "args[1]", "index 1 is not an object"),
    ],
)
def test_what_does_not_parse(tree, rule, path, words):
    (failure,) = parse_inputs(spec(tree)).failures
    assert (failure.rule, failure.path) == (rule, path)
    assert words in failure.detail


def test_all_failures_are_told_in_the_order_of_the_backend():
    parsed = parse_inputs(spec(tup(tup(ordered({"a": lis()}), dic({1: T})), dic({}))))
    assert [(item.rule, item.path) for item in parsed.failures] == [
        ("R9", "args[0]"),
        ("R10", "args[0]['a']"),
        ("R11", "args[1]"),
    ]


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "[1, 2]", "[1, null]", '"x"', "[1, {}, 3]", '[1, {"type": "\\ud800"}]']
)
def test_what_is_no_spec(text):
    parsed = parse_inputs(text)
    assert parsed.root is None or parsed.root.kind != "tuple"
    assert parsed.failures


def test_a_context_may_be_a_list_null_or_the_text_null():
    for context in (["a"], '["a"]'):
        assert outputs({"type": "builtins.dict", "context": context, "children_spec": [T]}) == ["RESULT[a]"]
    for context in (None, "null", 3):
        assert outputs({"type": "builtins.tuple", "context": context, "children_spec": [T]}) == ["RESULT[0]"]


def test_what_has_no_type_is_a_tensor_whatever_is_below():
    odd = {"type": 3, "context": None, "children_spec": [T, T]}
    assert outputs(tup(odd, T)) == ["RESULT[0]", "RESULT[1]"]


def test_a_member_that_is_given_twice_counts_the_first_time():
    text = spec(tup(T, T)).replace('"type": "builtins.tuple"', '"type": "builtins.tuple", "type": "builtins.set"')
    assert parse_outputs(text) == parse_outputs(spec(tup(T, T)))
    assert parse_outputs(text).failures == ()


def test_the_version_is_not_looked_at():
    found = parse_outputs(json.dumps([7, T]))
    assert (found.root.kind, found.root.path, found.failures) == ("tensor", "result", ())
