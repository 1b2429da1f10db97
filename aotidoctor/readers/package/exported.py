"""What the JSON of a torch.export archive says: baked-in constants, custom operators, the call spec.

Only ``models/<name>.json`` is read. Nothing is deserialised as torch would: no tensors, no pickles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.json_types import JsonObject, JsonValue, as_list, as_object
from aotidoctor.model.operators import BUILT_IN
from aotidoctor.readers.package import program_facts
from aotidoctor.readers.package.metadata import argument_kind
from aotidoctor.readers.package.program_functions import functions
from aotidoctor.readers.package.text import JsonError, as_text, clean, parse_json

# Parsed JSON takes many times its size in memory.
MAX_JSON = 64 << 20

_MAX_DEPTH = 64


def parse_exported(name: str, data: bytes) -> ExportedFacts | None:
    """Facts of one program; None when the bytes are not the JSON of one."""
    document = program_document(data)
    return None if document is None else program_facts_of(name, document)


def program_document(data: bytes) -> JsonObject | None:
    """The JSON of a program; None when the bytes are not that."""
    try:
        program = as_object(parse_json(data))
    except JsonError:
        return None
    return program if as_object(program.get("graph_module")) else None


def program_facts_of(name: str, program: JsonObject) -> ExportedFacts:
    """Facts of the program with this JSON."""
    module = as_object(program.get("graph_module"))
    in_spec, out_spec = (_call_spec(module, which) for which in ("in_spec", "out_spec"))
    targets = Counter(_targets(as_object(module.get("graph")), 0))
    paths = leaf_paths(in_spec) if in_spec is not None else ()
    leaves = program_facts.leaves(module, paths, _constant_values(module))
    live, nodes = functions(module)
    return ExportedFacts(
        name=name,
        constant_inputs={leaf.path: leaf.value for leaf in leaves if leaf.value is not None},
        custom_ops=tuple(dict.fromkeys(op for target in targets if (op := _custom_op(target)) is not None)),
        in_spec=in_spec,
        ops={target.removeprefix("torch.ops."): count for target, count in targets.items()},
        torch_version=as_text(program.get("torch_version")) or None,
        out_spec=out_spec,
        schema=_schema(program),
        dialects=tuple(as_text(item) for item in as_list(program.get("verifiers"))),
        leaves=leaves,
        outputs=program_facts.outputs(module),
        constants=program_facts.constants(module),
        ranges=program_facts.ranges(program),
        functions=live,
        nodes=nodes,
    )


_MAPPINGS = ("builtins.dict", "collections.OrderedDict", "collections.defaultdict")


def leaf_paths(in_spec: str) -> tuple[str, ...]:
    """The user's path of every leaf of a serialised call spec, in flattening order; empty when it is not understood."""
    try:
        parsed = as_list(parse_json(in_spec.encode()))
    except JsonError:
        return ()
    call = as_list(as_object(parsed[1]).get("children_spec")) if len(parsed) == 2 else []
    if len(call) != 2:
        return ()
    return (*_walk(as_object(call[0]), "args", 0), *_walk(as_object(call[1]), "kwargs", 0))


def _walk(spec: JsonObject, path: str, depth: int) -> Iterator[str]:
    kind = spec.get("type")
    if kind is None:
        yield path
        return
    children = [as_object(child) for child in as_list(spec.get("children_spec"))]
    if depth > _MAX_DEPTH:
        return
    keys = _keys(spec)
    for index, child in enumerate(children):
        if index < len(keys) and kind not in _MAPPINGS:
            step = f".{keys[index]}"
        else:
            step = f"[{keys[index]!r}]" if index < len(keys) else f"[{index}]"
        yield from _walk(child, path + step, depth + 1)


def _keys(spec: JsonObject) -> list[str | int]:
    """Keys of a dict-like node: its context is JSON text, a list of keys, for a defaultdict the last item of one."""
    try:
        context = parse_json(as_text(spec.get("context")).encode())
    except JsonError:
        return []
    if isinstance(context, dict):
        context = next((value for value in context.values() if isinstance(value, list)), [])
    items = as_list(context)
    if items and isinstance(items[-1], list):
        # A dataclass has two lists: the fields that hold something, and those that are None.
        items = as_list(items[0]) if isinstance(items[0], list) else items[-1]
    return [clean(item) if isinstance(item, str) else item for item in items if isinstance(item, str | int)]


def _call_spec(module: JsonObject, which: str) -> str | None:
    for entry in as_list(module.get("module_call_graph")):
        call = as_object(entry)
        if call.get("fqn") == "":
            return as_text(as_object(call.get("signature")).get(which)) or None
    return None


def _schema(program: JsonObject) -> str | None:
    version = as_object(program.get("schema_version"))
    parts = [version.get(key) for key in ("major", "minor")]
    return ".".join(map(str, parts)) if all(isinstance(part, int) for part in parts) else None


def _constant_values(module: JsonObject) -> list[str]:
    specs = [as_object(spec) for spec in as_list(as_object(module.get("signature")).get("input_specs"))]
    return [_value_repr(as_object(spec["constant_input"]).get("value")) for spec in specs if "constant_input" in spec]


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


def _targets(graph: JsonObject, depth: int) -> Iterator[str]:
    """Targets of all nodes, also of the graphs that higher-order operators carry."""
    if depth > _MAX_DEPTH:
        return
    for item in as_list(graph.get("nodes")):
        node = as_object(item)
        yield as_text(node.get("target"))
        for argument in as_list(node.get("inputs")):
            inner = as_object(as_object(as_object(argument).get("arg")).get("as_graph"))
            if inner:
                yield from _targets(as_object(inner.get("graph")), depth + 1)


def _custom_op(target: str) -> str | None:
    """``ns::op`` of ``torch.ops.ns.op.overload`` when the namespace is not one of PyTorch's own."""
    parts = target.split(".")
    if target.startswith("torch.ops.") and len(parts) >= 4 and parts[2] not in BUILT_IN:
        return f"{parts[2]}::{parts[3]}"
    return None
