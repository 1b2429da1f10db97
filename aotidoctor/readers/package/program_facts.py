"""Leaves, outputs and constants of an exported program, from the signature and the tensor metadata of its JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.model.c10 import EXPORTED_TYPES
from aotidoctor.model.json_types import JsonObject, JsonValue, as_integer, as_list, as_object
from aotidoctor.model.program import ProgramConstant, ProgramLeaf, ProgramOutput, ProgramTensor, SizeRange
from aotidoctor.readers.package.metadata import argument_kind
from aotidoctor.readers.package.program_sizes import size_text
from aotidoctor.readers.package.text import as_text, clean

# Kind of a constant -> the fields of its name in the graph and of its name in the model.
CONSTANT_KINDS: Mapping[str, str] = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
    "custom_obj": "custom_obj_name",
}
MUTATIONS: Mapping[str, str] = {
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}
# What is nested deeper was not written by torch.
_DEEPEST = 24


def leaves(module: JsonObject, paths: Sequence[str]) -> tuple[ProgramLeaf, ...]:
    """Leaves of the call in order."""
    found: list[ProgramLeaf] = []
    specs = [spec for spec in specs_of(module, "input_specs") if "user_input" in spec or "constant_input" in spec]
    for index, spec in enumerate(specs):
        if "constant_input" in spec:
            constant = as_object(spec["constant_input"])
            kind, name, value = "constant", as_text(constant.get("name")), _value_repr(constant.get("value"))
        else:
            kind, name, value = *_argument(as_object(spec["user_input"]).get("arg")), None
        path = paths[index] if len(paths) == len(specs) else name
        tensor = tensor_of(module, name) if kind == "tensor" else None
        found.append(ProgramLeaf(name=name, path=path, kind=kind, tensor=tensor, value=value))
    return tuple(found)


def outputs(module: JsonObject) -> tuple[ProgramOutput, ...]:
    """Outputs of the graph in order, mutations included."""
    return tuple(
        _output(module, kind, as_object(spec[kind])) for spec in specs_of(module, "output_specs") for kind in spec
    )


def _output(module: JsonObject, kind: str, spec: JsonObject) -> ProgramOutput:
    what, name = _argument(spec.get("arg"))
    if kind != "user_output":
        what, name = "tensor", as_text(as_object(spec.get("arg")).get("name"))
    target = as_text(spec.get(MUTATIONS[kind])) if kind in MUTATIONS else None
    tensor = tensor_of(module, name) if what == "tensor" else None
    return ProgramOutput(kind=kind, name=name or None, target=target, tensor=tensor)


def constants(module: JsonObject) -> tuple[ProgramConstant, ...]:
    """Parameters, buffers, tensor constants and custom objects, in order of the signature."""
    read = _names_read(as_object(module.get("graph")))
    found = []
    for spec in specs_of(module, "input_specs"):
        for kind, field in CONSTANT_KINDS.items():
            inner = as_object(spec.get(kind))
            if not inner:
                continue
            name = as_text(as_object(inner.get("arg")).get("name"))
            persistent = inner.get("persistent")
            found.append(
                ProgramConstant(
                    name=name,
                    fqn=as_text(inner.get(field)),
                    kind=kind,
                    persistent=persistent if isinstance(persistent, bool) else None,
                    tensor=tensor_of(module, name),
                    used=name in read,
                )
            )
    return tuple(found)


def ranges(program: JsonObject) -> dict[str, SizeRange]:
    """Bounds by symbol or expression."""
    found = {}
    for symbol, value in as_object(program.get("range_constraints")).items():
        low, high = (as_object(value).get(key) for key in ("min_val", "max_val"))
        found[symbol] = SizeRange(low=as_integer(low), high=as_integer(high))
    return found


def tensor_of(module: JsonObject, name: str) -> ProgramTensor | None:
    """Metadata of a tensor of the graph, None when there is none."""
    return tensor_meta(as_object(as_object(module.get("graph")).get("tensor_values")).get(name))


def tensor_meta(value: JsonValue) -> ProgramTensor | None:
    """A serialised ``TensorMeta``; None when it is none."""
    meta = as_object(value)
    if not meta:
        return None
    number, device = meta.get("dtype"), as_object(meta.get("device"))
    kind, index = as_text(device.get("type")), as_integer(device.get("index"))
    return ProgramTensor(
        dtype=EXPORTED_TYPES.get(number) if isinstance(number, int) else None,
        shape=_sizes(meta.get("sizes")),
        stride=_sizes(meta.get("strides")),
        device=(kind if index is None else f"{kind}:{index}") or None,
    )


def names_in(value: JsonValue, depth: int = 0) -> Iterator[str]:
    """Names of the values that a serialised argument refers to, in order."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for item in value:
            yield from names_in(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("name", "as_name") and isinstance(item, str):
                yield item
            elif key != "as_graph":
                yield from names_in(item, depth + 1)


def _names_read(graph: JsonObject) -> set[str]:
    used = set(names_in(graph.get("outputs")))
    for node in as_list(graph.get("nodes")):
        for argument in as_list(as_object(node).get("inputs")):
            used.update(names_in(as_object(argument).get("arg")))
    return used


def _value_repr(value: JsonValue) -> str:
    match value:
        case {"as_none": _}:
            return "None"
        case {"as_string": str(text)}:
            return repr(clean(text))
        case {"as_int": bool() | int() as plain} | {"as_bool": bool() as plain}:
            return repr(plain)
        case {"as_float": int() | float() as number}:
            return repr(float(number))
        case {"as_float": str(text)}:
            return {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}.get(text, clean(text))
    return f"<{argument_kind(value)}>"


def _argument(argument: JsonValue) -> tuple[str, str]:
    """Kind and name of an argument of the signature."""
    union = as_object(argument)
    for key, value in union.items():
        inner = as_object(value)
        name = as_text(inner.get("name")) or as_text(inner.get("as_name"))
        return ("tensor" if key == "as_tensor" else "symbol" if "as_name" in inner else "constant"), name
    return "constant", ""


def specs_of(module: JsonObject, which: str) -> list[JsonObject]:
    """The ``input_specs`` or ``output_specs`` of the signature."""
    return [as_object(spec) for spec in as_list(as_object(module.get("signature")).get(which))]


def _sizes(value: JsonValue) -> tuple[str, ...] | None:
    found = [size_text(item) for item in as_list(value)]
    known = [size for size in found if size is not None]
    return tuple(known) if isinstance(value, list) and len(known) == len(found) else None
