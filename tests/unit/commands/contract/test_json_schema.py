"""The schema of a contract: every document is judged as the compiled code would take it."""

from __future__ import annotations

import json

import pytest

from aotidoctor.commands.contract.emit import json_schema
from aotidoctor.commands.contract.shippable import ShippableContract
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.inputs import Container, Leaf

NO_KWARGS = Container(type="dict", children=())


def leaf(*dims, index=0, **more):
    given = {"dtype": "float32", "rank": len(dims), "dims": dims, "device_type": "cpu"}
    return LeafSpec(index=index, path=f"args[{index}]", kind="tensor", input_index=index, **(given | more))


def schema(*leaves, args=None, kwargs=NO_KWARGS, **more):
    args = args or Container(type="tuple", children=tuple(Leaf(value=at) for at in range(len(leaves))))
    contract = ModelContract(
        model_name="m", source="wrapper.cpp", args=args, kwargs=kwargs, leaves=leaves, n_inputs=len(leaves)
    )
    given = {"source": "m.pt2", "sha256": None, "contract": contract, "symbols": (), "baked": {}, "unstated": ()}
    return json.loads(json_schema(ShippableContract(**(given | more))))


def tensor_of(document, at=0):
    return document["properties"]["args"]["prefixItems"][at]["properties"]["tensor"]


def test_a_call_without_arguments():
    empty = schema(args=Container(type="tuple", children=()))
    assert empty["required"] == []
    assert empty["properties"]["args"] == {"type": "array", "minItems": 0, "maxItems": 0}
    assert "x-sha256" not in empty
    assert schema(sha256="ab", unstated=("its dtype",)) | {"x-sha256": "ab", "x-not-checked": ["its dtype"]} == schema(
        sha256="ab", unstated=("its dtype",)
    )


def test_containers():
    leaves = (leaf(Dim(static=2)), leaf(Dim(static=3), index=1))
    children = (Leaf(value=0), Leaf(value=1))
    kinds = {
        "ordereddict": ("object", ("b", 3)),
        "list": ("array", ()),
        "namedtuple:point": ("array", ("x", "y")),
        "my.Record": (None, ("x", "y")),
    }
    for kind, (type_, keys) in kinds.items():
        node = Container(type=kind, children=children, keys=keys)
        (made,) = schema(*leaves, args=Container(type="tuple", children=(node,)))["properties"]["args"]["prefixItems"]
        assert made.get("type") == type_, kind
        if type_ == "object":
            assert (made["required"], made["additionalProperties"]) == (["b", "3"], False)
            assert list(made["properties"]) == ["b", "3"]
        elif type_ == "array":
            assert (made["minItems"], made["maxItems"], len(made["prefixItems"])) == (2, 2, 2)


def test_values_that_are_no_tensors():
    leaves = (LeafSpec(index=0, path="k", kind="constant"), LeafSpec(index=1, path="u", kind="unknown"))
    kwargs = Container(type="dict", children=(Leaf(value=0), Leaf(value=1)), keys=("k", "u"))
    made = schema(*leaves, args=Container(type="tuple", children=()), kwargs=kwargs, baked={"k": "3"})
    assert made["properties"]["kwargs"]["properties"] == {
        "k": {"not": {"type": "object", "required": ["tensor"]}, "x-baked": "3", "title": "k"},
        "u": {"title": "u"},
    }
    assert (made["required"], made["properties"]["kwargs"]["required"]) == (["kwargs"], ["k", "u"])


@pytest.mark.parametrize(
    ("device", "pattern", "required"),
    [
        ("cpu", "^cpu(:[0-9]+)?$", ["dtype", "shape"]),
        ("cuda", "^cuda(:[0-9]+)?$", ["dtype", "shape", "device"]),
        (None, None, ["dtype", "shape"]),
    ],
)
def test_devices(device, pattern, required):
    """A document without a device means the CPU."""
    made = tensor_of(schema(leaf(Dim(static=2), device_type=device)))
    assert made["required"] == required
    assert made["properties"].get("device", {}).get("pattern") == pattern


@pytest.mark.parametrize(
    ("dtype", "told"), [("float32", {"const": "float32"}), ("bool", {"enum": ["bool", "int8", "uint8"]}), (None, None)]
)
def test_dtypes(dtype, told):
    """Masks of one byte are the same bytes."""
    assert tensor_of(schema(leaf(Dim(static=2), dtype=dtype)))["properties"].get("dtype") == told


def test_what_is_not_used_or_not_known_is_not_compared():
    unused = tensor_of(schema(leaf(Dim(static=2), used=False)))
    assert "allOf" not in unused
    assert "dtype" not in unused["properties"]
    unknown = tensor_of(schema(leaf(dims=None, rank=None)))
    assert "allOf" not in unknown
    assert unknown["properties"]["dtype"] == {"const": "float32"}


@pytest.mark.parametrize(
    ("dim", "told"),
    [
        (Dim(static=4), {"const": 4}),
        (Dim(), {"type": "integer", "minimum": 0}),
        (
            Dim(min=2, max=64, expr=parse_expr("s0")),
            {"type": "integer", "minimum": 0, "x-compiled-minimum": 2, "x-compiled-maximum": 64},
        ),
        (Dim(expr=parse_expr("8L*s0 + 16L")), {"type": "integer", "minimum": 0, "multipleOf": 8}),
        # 3, 11, 19: no multiples of 8.
        (Dim(expr=parse_expr("8L*s0 + 3L")), {"type": "integer", "minimum": 0}),
        (Dim(expr=parse_expr("s0*s1")), {"type": "integer", "minimum": 0}),
    ],
)
def test_sizes(dim, told):
    made = tensor_of(schema(leaf(Dim(static=5), dim)))
    assert made["allOf"][0]["properties"]["shape"]["prefixItems"] == [{"const": 5}, told]


def test_a_stride_is_asked_for_where_contiguous_would_be_wrong():
    made = tensor_of(schema(leaf(Dim(static=4), Dim(static=3), strides=(1, 4))))
    rules = [rule["anyOf"][0] for rule in made["allOf"][0]["allOf"]]
    assert rules == [
        {"properties": {"stride": {"prefixItems": [{"const": 1}]}}, "required": ["stride"]},
        {"properties": {"stride": {"prefixItems": [{}, {"const": 4}]}}, "required": ["stride"]},
    ]
    contiguous = tensor_of(schema(leaf(Dim(static=4), Dim(static=3), strides=(3, None))))
    assert [rule["anyOf"][0] for rule in contiguous["allOf"][0]["allOf"]] == [
        {"properties": {"stride": {"prefixItems": [{"const": 3}]}}}
    ]


def test_a_tensor_of_one_element_may_have_another_rank():
    (one,) = tensor_of(schema(leaf(Dim(static=1), Dim(static=1))))["allOf"]
    assert one["anyOf"][1] == {"properties": {"shape": {"items": {"const": 1}}}}
    (scalar,) = tensor_of(schema(leaf()))["allOf"]
    assert scalar["anyOf"][0]["properties"]["shape"] == {"type": "array", "minItems": 0, "maxItems": 0}


def test_what_sizes_have_to_do_with_each_other_is_listed():
    made = schema(leaf(Dim(static=2), Dim(expr=parse_expr("s0"))), leaf(Dim(), Dim(expr=parse_expr("2L*s0")), index=1))
    assert made["x-relations"] == [
        {"path": "args[0]", "dim": 1, "size": "s0"},
        {"path": "args[1]", "dim": 1, "size": "2*s0"},
    ]
