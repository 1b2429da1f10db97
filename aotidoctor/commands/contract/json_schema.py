"""A JSON Schema of the calls that the compiled code computes rightly, as an inputs document of ``--inputs`` has them.

A tensor is ``{"tensor": {"dtype", "shape", "stride", "device"}}``; without ``stride`` it is contiguous. ``layout``,
``conj`` and ``neg`` may be added. What sizes have to do with each other no schema can say: ``x-relations`` lists it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from aotidoctor.commands.contract.expressions import step_of
from aotidoctor.commands.contract.read import Shippable
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree
from aotidoctor.version import __version__

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MASKS = ("bool", "int8", "uint8")
_NO_ELEMENT: JsonObject = {"properties": {"shape": {"contains": {"const": 0}}}}


def json_schema(wanted: Shippable) -> str:
    """The text of the schema."""
    args, kwargs = wanted.contract.args, wanted.contract.kwargs
    assert args is not None  # noqa: S101 - told to the type checker; the reader looked
    assert kwargs is not None  # noqa: S101
    digest: JsonObject = {"x-sha256": wanted.sha256} if wanted.sha256 else {}
    document: JsonObject = {
        "$schema": _DIALECT,
        "title": f"Inputs of {wanted.source}",
        "$comment": f"written by aotidoctor {__version__}",
        **digest,
        "type": "object",
        "properties": {
            "args": _sequence(wanted, args),
            "kwargs": {
                "type": "object",
                "properties": {
                    str(key): _tree(wanted, child) for key, child in zip(kwargs.keys, kwargs.children, strict=True)
                },
                "required": [str(key) for key in kwargs.keys],
                "additionalProperties": False,
            },
        },
        "required": [*(["args"] if args.children else []), *(["kwargs"] if kwargs.children else [])],
        "additionalProperties": False,
        "x-relations": _relations(wanted),
        "x-not-checked": list(wanted.untold),
    }
    return json.dumps(document, indent=2) + "\n"


def _sequence(wanted: Shippable, node: Container[int]) -> JsonObject:
    count = len(node.children)
    items: JsonObject = {"prefixItems": [_tree(wanted, child) for child in node.children]} if count else {}
    return {"type": "array", **items, "minItems": count, "maxItems": count}


def _tree(wanted: Shippable, tree: Tree[int]) -> JsonObject:
    match tree:
        case Leaf(value=index):
            return _leaf(wanted, wanted.contract.leaves[index])
        case Container(type=kind, children=children, keys=keys) if kind in MAPPINGS:
            names: list[JsonValue] = [str(key) for key in keys]
            return {
                "type": "object",
                "properties": {str(key): _tree(wanted, child) for key, child in zip(keys, children, strict=False)},
                "required": names,
                "additionalProperties": False,
                "$comment": f"in this order: {names}",
            }
        case Container(type=kind) if kind in ("tuple", "list", "structseq") or kind.startswith("namedtuple"):
            return _sequence(wanted, tree)
        case _:
            return {}


def _leaf(wanted: Shippable, leaf: LeafSpec) -> JsonObject:
    if leaf.input_index is not None:
        tensor = _tensor(leaf)
        return {"type": "object", "properties": {"tensor": tensor}, "required": ["tensor"], "title": leaf.path}
    baked = {"x-baked": wanted.baked[leaf.path]} if leaf.path in wanted.baked else {}
    plain: JsonObject = {"not": {"type": "object", "required": ["tensor"]}} if leaf.kind == "constant" else {}
    return {**plain, **baked, "title": leaf.path}


def _tensor(leaf: LeafSpec) -> JsonObject:
    properties: JsonObject = {"layout": {"const": "strided"}, "conj": {"const": False}, "neg": {"const": False}}
    if leaf.device_type is not None:
        properties["device"] = {"type": "string", "pattern": f"^{re.escape(leaf.device_type)}(:[0-9]+)?$"}
    elsewhere = [] if leaf.device_type in (None, "cpu") else ["device"]
    base: JsonObject = {"type": "object", "properties": properties, "required": ["dtype", "shape", *elsewhere]}
    if leaf.used is False:
        return base
    if leaf.dtype is not None:
        properties["dtype"] = {"enum": list(_MASKS)} if leaf.dtype in _MASKS else {"const": leaf.dtype}
    if leaf.dims is None:
        return base
    sizes: list[JsonValue] = [_size(dim) for dim in leaf.dims]
    shape: JsonObject = {"type": "array", "minItems": len(sizes), "maxItems": len(sizes)}
    form: JsonObject = {"properties": {"shape": {**shape, **({"prefixItems": sizes} if sizes else {})}}}
    steps: list[JsonValue] = [
        _step(leaf.dims, at, step) for at, step in enumerate(leaf.strides or ()) if step is not None
    ]
    compiled: JsonObject = {**form, "allOf": steps} if steps else form
    if all(dim.static == 1 for dim in leaf.dims):
        alone: JsonObject = {"properties": {"shape": {"items": {"const": 1}}}}
        compiled = {"anyOf": [compiled, alone]}
    return {**base, "allOf": [compiled]}


def _size(dim: Dim) -> JsonObject:
    if dim.static is not None:
        return {"const": dim.static}
    step = step_of(dim.expr) if dim.expr is not None else None
    whole: JsonObject = {"type": "integer", "minimum": 0}
    if step is not None and step[0] > 1 and step[1] % step[0] == 0:
        whole["multipleOf"] = step[0]
    low: JsonObject = {} if dim.min is None else {"x-compiled-minimum": dim.min}
    high: JsonObject = {} if dim.max is None else {"x-compiled-maximum": dim.max}
    return {**whole, **low, **high}


def _step(dims: Sequence[Dim], at: int, step: int) -> JsonObject:
    """The stride of one dim: it does not matter where the dim has one element, or the tensor has none."""
    inner = [dim.static for dim in dims[at + 1 :]]
    contiguous = math.prod(max(size or 1, 1) for size in inner) if None not in inner else None
    asked: JsonObject = {} if contiguous in (None, step) else {"required": ["stride"]}
    before: list[JsonValue] = [{}] * at
    alone: JsonObject = {"properties": {"shape": {"prefixItems": [*before, {"const": 1}]}}}
    right: JsonObject = {"properties": {"stride": {"prefixItems": [*before, {"const": step}]}}, **asked}
    return {"anyOf": [right, alone, _NO_ELEMENT]}


def _relations(wanted: Shippable) -> list[JsonValue]:
    """Which dims hold which size, for those that share a symbol."""
    return [
        {"path": leaf.path, "dim": at, "size": str(dim.expr)}
        for leaf in wanted.contract.leaves
        for at, dim in enumerate(leaf.dims or ())
        if dim.static is None and dim.expr is not None
    ]
