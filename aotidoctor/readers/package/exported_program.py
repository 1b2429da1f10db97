"""Read a torch.export program from its JSON: leaves, outputs, constants, sizes, operators and functions.

Only ``models/<name>.json`` is read. Nothing is deserialised as torch would: no tensors, no pickles.

Sizes: ``8*s40`` of ``Mul(Integer(8), Symbol('s40', positive=True, integer=True))``. The text is what sympy's
``srepr`` gives (older torch: its ``str``). It is parsed, never evaluated.

Functions that the outputs depend on: a node counts where a value leads from an input of the user to it and from it to
an output. What does not depend on an input is folded into a constant when the program is compiled, and what leads
nowhere is left out. Imported only where a package holds a program or is compared with one.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from aotidoctor.model.artifact import (
    ExportedFacts,
    ProgramArchive,
    ProgramConstant,
    ProgramLeaf,
    ProgramOutput,
    ProgramTensor,
    SizeRange,
)
from aotidoctor.model.inputs import SpecError, TensorDesc, parse_call, walk_call
from aotidoctor.model.record import JsonObject, JsonValue, as_integer, as_list, as_object
from aotidoctor.model.torch_names import EXPORTED_TYPES, foreign
from aotidoctor.readers.package.blob import JsonError, as_text, clean_surrogates, parse_json
from aotidoctor.readers.package.package_models import argument_kind

# Sizes as text.
_MAX_TEXT = 4000
_INFIX = {"Mul": "*", "Add": " + "}


def size_text(value: JsonValue) -> str | None:
    """The text of a serialised ``SymInt``; None for anything else."""
    union = as_object(value)
    number = union.get("as_int")
    if isinstance(number, int) and not isinstance(number, bool):
        return str(number)
    text = as_text(as_object(union.get("as_expr")).get("expr_str"))
    return expr_text(text) if text else None


def expr_text(text: str) -> str:
    """Infix text of an ``srepr``; anything else unchanged."""
    if len(text) > _MAX_TEXT or "(" not in text:
        return text[:_MAX_TEXT]
    try:
        return _infix(ast.parse(text, mode="eval").body) or text
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def _infix(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=int() as number):
            return str(number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return str(-number)
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name), *_]):
            return name
        case ast.Call(func=ast.Name(id="Integer"), args=[value]):
            return _infix(value)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            parts = [part for part in map(_infix, arguments) if part is not None]
            if len(parts) != len(arguments):
                return None
            if name == "Pow" and len(parts) == 2:
                return "**".join(parts)
            if name == "Mul":
                parts = [f"({part})" if " + " in part else part for part in parts]
            return _INFIX[name].join(parts) if name in _INFIX else f"{name}({', '.join(parts)})"
    return None


# Leaves, outputs and constants, from the signature and the tensor metadata.
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


def program_leaves(module: JsonObject, paths: Sequence[str]) -> Iterator[ProgramLeaf]:
    """Leaves of the call in order."""
    specs = [spec for spec in specs_of(module, "input_specs") if "user_input" in spec or "constant_input" in spec]
    for index, spec in enumerate(specs):
        if "constant_input" in spec:
            constant = as_object(spec["constant_input"])
            kind, name, value = "constant", as_text(constant.get("name")), _value_repr(constant.get("value"))
        else:
            kind, name, value = *_argument(as_object(spec["user_input"]).get("arg")), None
        path = paths[index] if len(paths) == len(specs) else name
        tensor = tensor_of(module, name) if kind == "tensor" else None
        yield ProgramLeaf(name=name, path=path, kind=kind, tensor=tensor, value=value)


def program_outputs(module: JsonObject) -> Iterator[ProgramOutput]:
    """Outputs of the graph in order, mutations included."""
    for kind, value in (pair for spec in specs_of(module, "output_specs") for pair in spec.items()):
        spec = as_object(value)
        what, name = _argument(spec.get("arg"))
        if kind != "user_output":
            what, name = "tensor", as_text(as_object(spec.get("arg")).get("name"))
        target = as_text(spec.get(MUTATIONS[kind])) if kind in MUTATIONS else None
        tensor = tensor_of(module, name) if what == "tensor" else None
        yield ProgramOutput(kind=kind, name=name or None, target=target, tensor=tensor)


def program_constants(module: JsonObject) -> Iterator[ProgramConstant]:
    """Parameters, buffers, tensor constants and custom objects, in order of the signature."""
    read = read_names(module)
    for spec in specs_of(module, "input_specs"):
        for kind, field in CONSTANT_KINDS.items():
            inner = as_object(spec.get(kind))
            if not inner:
                continue
            name = as_text(as_object(inner.get("arg")).get("name"))
            persistent = inner.get("persistent")
            yield ProgramConstant(
                name=name,
                fqn=as_text(inner.get(field)),
                kind=kind,
                persistent=persistent if isinstance(persistent, bool) else None,
                tensor=tensor_of(module, name),
                used=name in read,
            )


def tensor_of(module: JsonObject, name: str) -> ProgramTensor | None:
    """Metadata of a tensor of the graph, None when there is none."""
    return tensor_meta(as_object(as_object(module.get("graph")).get("tensor_values")).get(name))


def tensor_meta(value: JsonValue) -> ProgramTensor | None:
    """The tensor of a serialised ``TensorMeta``; None for anything else."""
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


def read_names(module: JsonObject) -> set[str]:
    """Names of the values that a node or an output of the graph reads."""
    graph = as_object(module.get("graph"))
    found = set(names_in(graph.get("outputs")))
    for node in as_list(graph.get("nodes")):
        # Not of a whole input: its own name is that of a parameter of the operator.
        for argument in as_list(as_object(node).get("inputs")):
            found.update(names_in(as_object(argument).get("arg")))
    return found


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


def _value_repr(value: JsonValue) -> str:
    match value:
        case {"as_none": _}:
            return "None"
        case {"as_string": str(text)}:
            return repr(clean_surrogates(text))
        case {"as_int": bool() | int() as plain} | {"as_bool": bool() as plain}:
            return repr(plain)
        case {"as_float": int() | float() as number}:
            return repr(float(number))
        case {"as_float": str(text)}:
            return {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}.get(text, clean_surrogates(text))
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


# Functions: which node computes which, in which mode.
MOST_NODES = 200_000


def program_functions(module: JsonObject) -> tuple[Mapping[str, str], frozenset[str]]:
    """Live nodes, by name: ``gelu_3`` to ``aten.gelu``, with its mode where there is one (``aten.gelu(tanh)``).

    And the names of all nodes and of their results.
    """
    nodes = [as_object(node) for node in as_list(as_object(module.get("graph")).get("nodes"))[:MOST_NODES]]
    # Names of parameters are among them, too, and do no harm.
    reads = [set(names_in(node.get("inputs"))) for node in nodes]
    makes = [{*names_in(node.get("outputs")), as_text(node.get("name"))} - {""} for node in nodes]
    fed = set(names_in([spec.get("user_input") for spec in specs_of(module, "input_specs")]))
    for read, made in zip(reads, makes, strict=True):
        if read & fed:
            fed |= made
    wanted = set(names_in([*specs_of(module, "output_specs")]))
    for read, made in zip(reversed(reads), reversed(makes), strict=True):
        if made & wanted:
            wanted |= read
    live: dict[str, str] = {}
    for node, made in zip(nodes, makes, strict=True):
        target = as_text(node.get("target"))
        if made & fed & wanted and target.startswith("torch.ops.aten."):
            inputs = {
                as_text(item.get("name")): item.get("arg") for item in map(as_object, as_list(node.get("inputs")))
            }
            mode = f"({as_text(as_object(inputs['approximate']).get('as_string'))})" if "approximate" in inputs else ""
            live |= dict.fromkeys(made, ".".join(target.split(".")[2:4]) + mode)
    return live, frozenset().union(*makes)


# The program. Parsed JSON takes many times its size in memory.
MAX_JSON = 64 << 20

_MAX_DEPTH = 64


def parse_exported(name: str, data: bytes) -> ExportedFacts | None:
    """Facts of one program; None when the bytes are not the JSON of one."""
    document = program_document(data)
    return None if document is None else program_facts_of(name, document)


def program_document(data: bytes) -> JsonObject | None:
    """The JSON of a program; None for other bytes."""
    try:
        program = as_object(parse_json(data))
    except JsonError:
        return None
    return program if as_object(program.get("graph_module")) else None


def program_facts_of(name: str, program: JsonObject) -> ExportedFacts:
    """Facts of the program with this JSON."""
    module = as_object(program.get("graph_module"))
    calls = map(as_object, as_list(module.get("module_call_graph")))
    signature = as_object(next((call.get("signature") for call in calls if call.get("fqn") == ""), None))
    in_spec, out_spec = (as_text(signature.get(which)) or None for which in ("in_spec", "out_spec"))
    version = [as_object(program.get("schema_version")).get(key) for key in ("major", "minor")]
    targets = Counter(_targets(as_object(module.get("graph")), 0))
    paths = leaf_paths(in_spec) if in_spec is not None else ()
    leaves = tuple(program_leaves(module, paths))
    live, nodes = program_functions(module)
    return ExportedFacts(
        name=name,
        constant_inputs={leaf.path: leaf.value for leaf in leaves if leaf.value is not None},
        custom_ops=tuple(foreign(target for target in targets if target.startswith("torch.ops."))),
        in_spec=in_spec,
        ops={target.removeprefix("torch.ops."): count for target, count in targets.items()},
        torch_version=as_text(program.get("torch_version")) or None,
        out_spec=out_spec,
        schema=".".join(map(str, version)) if all(isinstance(part, int) for part in version) else None,
        dialects=tuple(as_text(item) for item in as_list(program.get("verifiers"))),
        leaves=leaves,
        outputs=tuple(program_outputs(module)),
        constants=tuple(program_constants(module)),
        ranges={
            symbol: SizeRange(low=as_integer(bounds.get("min_val")), high=as_integer(bounds.get("max_val")))
            for symbol, value in as_object(program.get("range_constraints")).items()
            for bounds in (as_object(value),)
        },
        functions=live,
        nodes=nodes,
    )


def leaf_paths(in_spec: str) -> tuple[str, ...]:
    """The user's path of every leaf of a serialised call spec, in flattening order; empty when it is not understood."""
    try:
        # Each takes more than a character: the size of the JSON bounds them.
        args, kwargs = parse_call(in_spec, MAX_JSON)
    except SpecError:
        return ()
    return tuple(path for path, _ in walk_call(args, kwargs))


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


# Inputs that export took for another one, because one tensor was the example of both:
# ``torch.export.export(model, (x, x))``. The graph reads the last of them wherever the model reads any of them, and the
# others are never read. An input that does nothing in the model looks alike. Three signs together tell them apart: the
# examples in the archive are one tensor, the program never reads this input, and a line of the model that it was made
# from names it, for more than its shape or dtype.
_MOST_LINES = 20_000
_IDENTIFIER = re.compile(
    r"\b([A-Za-z_]\w{0,200})\b(?!\s?\.(?:shape|size|dtype|device|ndim|dim|layout|numel|is_\w{1,20})\b)"
)


def merged_inputs(
    archive: ProgramArchive, read_examples: Callable[[ProgramArchive], Mapping[str, TensorDesc]]
) -> dict[str, str]:
    """The path of each such input, with the path of the input that stands in its place.

    ``read_examples`` gives the archive's example inputs; it is called where the other two signs are there.
    """
    module = as_object(archive.document.get("graph_module"))
    read = read_names(module)
    tensors = [leaf for leaf in archive.facts.leaves if leaf.kind == "tensor"]
    unread = [leaf for leaf in tensors if leaf.name not in read]
    if not unread or len(unread) == len(tensors):
        return {}
    nodes = as_list(as_object(module.get("graph")).get("nodes"))[:MOST_NODES]
    named = {name for line in _model_lines(nodes) for name in _IDENTIFIER.findall(line[:2000])}
    unread = [leaf for leaf in unread if leaf.name in named]
    examples = read_examples(archive) if unread else {}
    found = {}
    for leaf in unread:
        own = examples.get(leaf.path)
        twins = [
            other.path
            for other in tensors
            if other.name in read and own is not None and _is_same(own, examples.get(other.path))
        ]
        if twins:
            found[leaf.path] = twins[-1]
    return found


def _model_lines(nodes: Sequence[JsonValue]) -> set[str]:
    """The lines of source code that the nodes come from."""
    lines: set[str] = set()
    for node in nodes:
        trace = as_text(as_object(as_object(node).get("metadata")).get("stack_trace"))
        lines.update(line for line in trace.splitlines() if not line.lstrip().startswith("File "))
        if len(lines) > _MOST_LINES:
            break
    return lines


def _is_same(one: TensorDesc, other: TensorDesc | None) -> bool:
    return (
        other is not None
        and one.storage is not None
        and one.storage == other.storage
        and (one.storage_offset, one.shape, one.stride) == (other.storage_offset, other.shape, other.stride)
    )
