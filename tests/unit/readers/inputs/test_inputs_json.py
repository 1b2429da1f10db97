"""The JSON inputs document: what it means, and what it is told where it means nothing."""

from __future__ import annotations

import math

import pytest

from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.inputs import Container, Leaf
from aotidoctor.readers.inputs.saved_calls import MAX_DEPTH, MOST_PLACES, DocumentError, decode, tensor_spec


def plainly(tree):
    """A tree of lists and dicts, with the kind of each container; tensors as dtype, shape and values."""
    if isinstance(tree, Leaf):
        return tree.value
    children = [plainly(child) for child in tree.children]
    return (tree.type, dict(zip(tree.keys, children, strict=True)) if tree.type == "dict" else children)


def decoded(document):
    return plainly(decode(document, lambda spec: (spec.dtype, spec.shape, spec.data), lambda value: value))


F2 = ("float32", (2,), (1.0, 2.0))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"tensor": {"data": [1.0, 2.0]}}, F2),
        ({"args": [[1.0, 2.0], 3]}, ("dict", {"args": ("list", [F2, 3])})),
        ({"kwargs": {"x": [1.0, 2.0]}}, ("dict", {"kwargs": ("dict", {"x": F2})})),
        ([[1.0, 2.0], None], ("list", [F2, None])),
        ([1, 2], ("list", [1, 2])),
        ({"x": "text"}, ("dict", {"x": "text"})),
        ({"tuple": [1, [2.0, 3.0]]}, ("tuple", [1, ("float32", (2,), (2.0, 3.0))])),
        ({"list": [1]}, ("list", [1])),
        ({"dict": [["a", 1], [2, 3]]}, ("dict", {"a": 1, 2: 3})),
        ({"list": 3}, ("dict", {"list": 3})),
        ({"tuple": [1], "x": 2}, ("dict", {"tuple": ("int64", (1,), (1,)), "x": 2})),
        ([{"list": [1, True]}], ("list", [("list", [1, True])])),
        ([{"tuple": []}], ("list", [("tuple", [])])),
        ([{"tensor": 5}], ("list", [("dict", {"tensor": 5})])),
        ([[], ["a"]], ("list", [("list", []), ("list", ["a"])])),
        ({}, ("dict", {})),
    ],
)
def test_what_a_document_means(document, expected):
    assert decoded(document) == expected


@pytest.mark.parametrize(
    ("spec", "dtype", "shape", "data"),
    [
        ({"data": [[1, 2], [3, 4]]}, "int64", (2, 2), (1, 2, 3, 4)),
        ({"data": [True, False]}, "bool", (2,), (True, False)),
        ({"data": [True, 2]}, "int64", (2,), (True, 2)),
        ({"data": [True, 2.5]}, "float32", (2,), (True, 2.5)),
        ({"data": 7}, "int64", (), (7,)),
        ({"data": [[], []]}, "float32", (2, 0), ()),
        ({"data": ["Infinity", "-Infinity"]}, "float32", (2,), (math.inf, -math.inf)),
        ({"data": [1, 2, 3, 4], "shape": [2, 2], "dtype": "torch.float16"}, "float16", (2, 2), (1, 2, 3, 4)),
        ({"shape": [3], "dtype": "int32"}, "int32", (3,), None),
        ({"shape": [3]}, "float32", (3,), None),
    ],
)
def test_a_tensor(spec, dtype, shape, data):
    made = tensor_spec(spec, "args[0]")
    assert (made.dtype, made.shape, made.data) == (dtype, shape, data)


def test_a_word_stands_for_nan_and_what_is_not_said_has_a_default():
    made = tensor_spec({"data": ["NaN"]}, "args[0]")
    assert math.isnan(made.data[0])
    assert (made.stride, made.device, made.low, made.high, made.seed) == (None, "cpu", None, None, 0)
    made = tensor_spec({"shape": [2, 2], "stride": [1, 2], "device": "cuda:1", "low": -1, "high": 2.5, "seed": 9}, "a")
    assert (made.stride, made.device, made.low, made.high, made.seed) == ((1, 2), "cuda:1", -1, 2.5, 9)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"data": [1, 2], "shape": [3]}, "args[0].data: observed 2 values, expected 3 for shape (3,)"),
        ({"data": [[1], [2, 3]]}, "args[0].data: observed rows of different sizes, expected a rectangular list"),
        ({"data": [1, "x"]}, "args[0].data: observed x, expected numbers in a rectangular list"),
        ({"data": [1, None]}, "args[0].data: observed None, expected numbers in a rectangular list"),
        ({"shape": [2, -1]}, "args[0].shape: observed [2, -1], expected a list of sizes"),
        ({"shape": [True]}, "args[0].shape: observed [True], expected a list of sizes"),
        ({"shape": 3}, "args[0].shape: observed 3, expected a list of sizes"),
        ({"shape": [1 << 48]}, "args[0].shape: observed [281474976710656], expected a list of sizes"),
        ({"shape": [2], "stride": [1, 1]}, "args[0].stride: observed 2 strides, expected 1"),
        ({"shape": [2], "dtype": "float33"}, "args[0].dtype: observed 'float33', expected the name of a torch dtype"),
        ({"shape": [2], "low": "0"}, "args[0].low: observed 0, expected a number"),
        ({"shape": [2], "high": True}, "args[0].high: observed True, expected a number"),
        ({"shape": [2], "sharp": 1, "data": None}, "args[0]: unknown keys ['sharp']"),
    ],
)
def test_a_tensor_that_contradicts_itself(spec, message):
    with pytest.raises(DocumentError) as caught:
        tensor_spec(spec, "args[0]")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"args": 3}, "args: observed int, expected a list or an object"),
        ("text", "kwargs: observed str, expected a list or an object"),
        ({"dict": [["a"]]}, "kwargs: observed ['a'], expected [key, value] pairs"),
        ([{"dict": [[1.5, 2]]}], "args[0]: observed [1.5, 2], expected [key, value] pairs"),
    ],
)
def test_a_document_that_means_nothing(document, message):
    with pytest.raises(DocumentError) as caught:
        decoded(document)
    assert str(caught.value) == message


def nested(levels, innermost):
    for _ in range(levels):
        innermost = [innermost]
    return innermost


def test_depth_and_number_of_places_are_bounded():
    assert decoded(nested(MAX_DEPTH, "x"))
    with pytest.raises(DocumentError, match=f"nested more than {MAX_DEPTH} deep"):
        decoded(nested(MAX_DEPTH + 2, "x"))
    with pytest.raises(DocumentError, match="expected numbers in a rectangular list"):
        decoded([nested(MAX_DEPTH + 2, 1)])
    decoded([None] * MOST_PLACES)
    with pytest.raises(LimitReachedError):
        decoded([None] * (MOST_PLACES + 1))


def test_the_tree_is_made_of_what_the_caller_makes():
    tree = decode([[1], "x"], lambda spec: spec.shape, lambda value: value)
    assert tree == Container(type="list", children=(Leaf(value=(1,)), Leaf(value="x")))
