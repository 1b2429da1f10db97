"""Parse the JSON of an exported program as graphs, nodes and values, and check its operators by name.

Nothing raises for what the JSON holds. Which operators write to an argument and which return views is known by name,
of PyTorch's own operators only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.model.artifact import ProgramArchive, SizeRange
from aotidoctor.model.evidence import Where
from aotidoctor.model.record import JsonObject, JsonValue, as_integer, as_list, as_object, record
from aotidoctor.program.value_rules import (
    SWITCHES,
    UNBACKED,
    NodeCall,
    NodeLocation,
    Places,
    Value,
    ViolationCollector,
    add_custom,
    add_not_functional,
    add_operator_kind,
    add_val_missing,
    check_training,
)
from aotidoctor.readers.package.exported_program import names_in, tensor_meta

# Graphs and nodes.
MAX_DEPTH = 64
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in .*)?$')


def as_text(value: JsonValue) -> str:
    """The value if it is text, else an empty one. Lone surrogates, which no stream can print, are replaced."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


@record
class Union:
    """A serialised union: ``kind`` is ``tensor`` of ``{"as_tensor": ...}``, empty when it is none."""

    kind: str
    value: JsonValue


def parse_union(value: JsonValue) -> Union:
    """Parse a union: the only entry of an object, without its ``as_``."""
    found = as_object(value)
    if len(found) != 1:
        return Union(kind="", value=None)
    key, inner = next(iter(found.items()))
    return Union(kind=as_text(key).removeprefix("as_"), value=inner)


@record
class SerialisedNode(NodeLocation):
    """A node of a serialised graph. ``target`` is as Python writes it: ``aten.add.Tensor``, ``operator.ge``."""

    target: str
    inputs: tuple[tuple[str, Union], ...]
    outputs: tuple[Union, ...]

    @property
    def is_operator(self) -> bool:
        """Whether it calls a registered operator with a schema."""
        parts = self.target.split(".")
        return len(parts) == 3 and parts[0] not in ("operator", "math", "torch", "higher_order")


@record
class SerialisedGraph:
    """A graph: ``path`` of the submodule (empty for the top), inputs, nodes, outputs, and metadata of its values."""

    path: str
    inputs: tuple[Union, ...]
    nodes: tuple[SerialisedNode, ...]
    outputs: tuple[Union, ...]
    tensors: JsonObject
    numbers: JsonObject
    objects: JsonObject

    def knows(self, name: str) -> bool:
        """Whether there is metadata of a value."""
        return name in self.tensors or name in self.numbers or name in self.objects


def parse_graphs(document: JsonObject) -> tuple[SerialisedGraph, ...]:
    """Parse the top graph, then those that it passes to higher-order operators."""
    return tuple(_graphs(as_object(as_object(document.get("graph_module")).get("graph")), "", 0))


def argument_name(item: Union) -> str:
    """Name of the value of a graph's input or output, empty for a constant."""
    inner = as_object(item.value)
    return as_text(inner.get("name")) or as_text(inner.get("as_name"))


def value_names(item: Union) -> Iterator[str]:
    """Names of all values in an argument: of a tensor, of a list of them."""
    return filter(None, map(as_text, names_in(item.value)))


def _graphs(graph: JsonObject, path: str, depth: int) -> Iterator[SerialisedGraph]:
    raw = [as_object(node) for node in as_list(graph.get("nodes"))]
    numbers = {**as_object(graph.get("sym_int_values")), **as_object(graph.get("sym_bool_values"))}
    yield SerialisedGraph(
        path=path,
        inputs=tuple(parse_union(item) for item in as_list(graph.get("inputs"))),
        nodes=tuple(_node(node) for node in raw),
        outputs=tuple(parse_union(item) for item in as_list(graph.get("outputs"))),
        tensors=as_object(graph.get("tensor_values")),
        numbers={**numbers, **as_object(graph.get("sym_float_values"))},
        objects=as_object(graph.get("custom_obj_values")),
    )
    if depth >= MAX_DEPTH:
        return
    for node in raw:
        for argument in as_list(node.get("inputs")):
            inner = as_object(as_object(as_object(argument).get("arg")).get("as_graph"))
            if inner:
                name = as_text(inner.get("name")) or "?"
                yield from _graphs(as_object(inner.get("graph")), f"{path}.{name}" if path else name, depth + 1)


def _node(raw: JsonObject) -> SerialisedNode:
    outputs = tuple(parse_union(item) for item in as_list(raw.get("outputs")))
    target = as_text(raw.get("target"))
    given = next((name for item in outputs for name in value_names(item)), "")
    arguments = [as_object(item) for item in as_list(raw.get("inputs"))]
    return SerialisedNode(
        name=as_text(raw.get("name")) or given,
        target=target[1:] if target.startswith("_operator.") else target.removeprefix("torch.ops."),
        inputs=tuple((as_text(item.get("name")), parse_union(item.get("arg"))) for item in arguments),
        outputs=outputs,
        where=source_line(as_text(as_object(raw.get("metadata")).get("stack_trace")).splitlines()),
    )


def source_line(trace: Sequence[str]) -> Where | None:
    """Innermost line of the user's source in a stack trace, outside of torch's modules."""
    frames = ((at, match) for at, text in enumerate(trace) if (match := _FRAME.match(text)) is not None)
    found = [(at, match) for at, match in frames if "/site-packages/torch/" not in match["file"]]
    if not found:
        return None
    at, frame = found[-1]
    text = trace[at + 1].strip()[:200] if at + 1 < len(trace) else ""
    return Where(file=frame["file"], line=int(frame["line"]), text=text)


# Values, and the symbols in them, from the archive's metadata.
NAMELESS = frozenset({"float8_e8m0fnu"})
"""Dtypes that the generated C++ code has no name for."""
_SYMBOL = re.compile(r"^[A-Za-z]+\d+$")


def graph_values(graph: SerialisedGraph) -> Iterator[Value]:
    """Yield the values of a graph: those of its inputs, then those of its nodes."""
    for item in graph.inputs:
        name = argument_name(item)
        yield from _value(graph, name, NodeLocation(name=name), None)
    for node in graph.nodes:
        for item in node.outputs:
            for name in value_names(item):
                yield from _value(graph, name, node, node.target)


def _value(graph: SerialisedGraph, name: str, node: NodeLocation, target: str | None) -> Iterator[Value]:
    number, meta = graph.numbers.get(name), as_object(graph.tensors.get(name))
    if name in graph.tensors:
        tensor, sizes = tensor_meta(meta), meta.get("sizes")
        yield Value(
            graph=graph.path,
            node=node,
            name=name,
            target=target,
            rank=len(as_list(sizes)),
            dtype=(tensor and tensor.dtype) or "",
            device=(tensor and tensor.device) or "",
            symbols=_symbols(sizes),
        )
    if number is not None:
        yield Value(graph=graph.path, node=node, name=name, target=target, symbols=_symbols(number))


def _symbols(value: JsonValue) -> frozenset[str]:
    """Symbols in the value that come from data."""
    return frozenset(symbol for text in _expressions(value, 0) for symbol in UNBACKED.findall(text))


def _expressions(value: JsonValue, depth: int) -> Iterator[str]:
    if depth > 8:
        return
    if isinstance(value, list):
        for item in value:
            yield from _expressions(item, depth + 1)
    elif isinstance(value, dict):
        text = value.get("expr_str")
        if isinstance(text, str):
            yield text[:4000]
        for item in value.values():
            if isinstance(item, list | dict):
                yield from _expressions(item, depth + 1)


def symbol_ranges(archive: ProgramArchive, everything: Sequence[SerialisedGraph]) -> Mapping[str, SizeRange]:
    """Ranges of all symbols; those that come from data and have no entry in the archive have no bounds."""
    texts = [text for graph in everything for part in (graph.tensors, graph.numbers) for text in _expressions(part, 0)]
    listed = archive.facts.ranges
    return {**listed, **{name: SizeRange() for text in texts for name in UNBACKED.findall(text) if name not in listed}}


def symbol_places(archive: ProgramArchive, top: SerialisedGraph) -> Places:
    """Places where each symbol is a size of an input."""
    found: dict[str, list[tuple[str, int | None]]] = {}
    for leaf in archive.facts.leaves:
        for dim, size in enumerate((leaf.tensor and leaf.tensor.shape) or ()):
            if _SYMBOL.match(size):
                found.setdefault(size, []).append((f"{leaf.path}.shape[{dim}]", _example(top, leaf.name, dim)))
    return found


def _example(top: SerialisedGraph, name: str, dim: int) -> int | None:
    """Size of the sample, from the hint in the metadata."""
    sizes = as_list(as_object(top.tensors.get(name)).get("sizes"))
    expression = as_object(as_object(sizes[dim]).get("as_expr")) if dim < len(sizes) else {}
    return as_integer(as_object(expression.get("hint")).get("as_int"))


# Operators that write to an argument or return views.
# Operators that write and do not end with an underscore, with the positions of the tensors that they write to.
_SILENT = {
    "aten._native_batch_norm_legit": (3, 4),
    "aten._batch_norm_with_update": (3, 4),
    "aten.rrelu_with_noise": (1,),
    "aten.fused_moving_avg_obs_fake_quant": (3, 4, 5, 6),
    "aten._fused_moving_avg_obs_fq_helper": (3, 4, 5, 6),
    "aten._cummax_helper": (1, 2),
    "aten._cummin_helper": (1, 2),
    "aten.record_stream": (0,),
    "aten.set_data": (0,),
}
_FUNCTIONAL = frozenset({"aten._no_grad_embedding_renorm_", "aten._native_batch_norm_legit.no_stats"})
_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "adjoint", "alias", "as_strided", "broadcast_to", "chunk", "conj", "contiguous", "detach", "diagonal", "expand",
        "expand_as", "flatten", "imag", "lift_fresh", "linalg_diagonal", "mH", "mT", "matrix_H", "moveaxis", "movedim",
        "narrow", "numpy_T", "permute", "positive", "ravel", "real", "reshape", "reshape_as", "resolve_conj",
        "resolve_neg", "select", "slice", "squeeze", "swapaxes", "swapdims", "t", "to", "transpose", "unflatten",
        "unfold", "unsqueeze", "view", "view_as", "view_as_complex", "view_as_real", "_conj", "_neg_view",
        "_reshape_alias", "unbind", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit",
    )
)  # fmt: skip
_TORCH_NAMESPACES = ("aten.", "prims.")


def writes_argument(node: SerialisedNode) -> bool:
    """Whether the operator is one of PyTorch's that writes to an argument."""
    overload = node.target.rpartition(".")[2]
    out = (overload == "out" or overload.endswith("_out")) and any(name == "out" for name, _ in node.inputs)
    return bool(written_arguments(node)) or (out and node.target.startswith(_TORCH_NAMESPACES))


def written_arguments(node: SerialisedNode) -> tuple[int, ...]:
    """Positions of the arguments that are written to, of one of PyTorch's operators."""
    operator, _, overload = node.target.rpartition(".")
    if not node.target.startswith(_TORCH_NAMESPACES) or operator in _FUNCTIONAL or node.target in _FUNCTIONAL:
        return ()
    if operator in _SILENT:
        return () if overload == "no_stats" else _SILENT[operator]
    name = operator.rpartition(".")[2]
    return (0,) if name.endswith("_") and not name.endswith("__") else ()


def may_return_view(node: SerialisedNode) -> bool:
    """Whether the operator may return the memory of its first argument."""
    return node.target.rpartition(".")[0] in _VIEWS


# Rules G01, G03, G04, A03 and A07 by name.
_BUILTIN = frozenset(
    f"operator.{name}"
    for name in (
        "getitem", "add", "mul", "sub", "truediv", "ge", "le", "gt", "lt", "eq", "ne", "floordiv", "mod", "and_", "or_",
        "not_", "pow", "neg", "abs", "lshift", "rshift",
    )
) | {"math.ceil", "math.floor", "math.trunc"}  # fmt: skip
_TORCH = frozenset({
    "autograd.grad_mode.set_grad_enabled", "sym_int", "sym_float", "sym_ite", "sym_max", "sym_min", "sym_not",
    "sym_sqrt", "_sym_sqrt", "sym_sum", "_C._set_grad_enabled", "amp.autocast_mode._enter_autocast",
    "amp.autocast_mode._exit_autocast", "export.custom_ops._call_custom_autograd_function_in_pre_dispatch",
    "fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless",
})  # fmt: skip
_PREDISPATCH = "torch._functorch.predispatch."
_OWN = ("aten", "prim", "prims")


def check_graph(graph: SerialisedGraph, dialects: Sequence[str], found: ViolationCollector) -> None:
    """Check metadata of all values and targets of all nodes of one graph."""
    strict = next((dialect for dialect in dialects if dialect != "TRAINING"), None)
    for item in graph.inputs:
        if item.kind in ("tensor", "sym_int", "sym_float", "sym_bool"):
            name = argument_name(item)
            _check_metadata(name, NodeCall(graph=graph.path, node=name, target=None), graph, found)
    for node in graph.nodes:
        call = NodeCall(graph=graph.path, node=node, target=node.target)
        for item in node.outputs:
            for name in value_names(item):
                _check_metadata(name, call, graph, found)
        if not _is_allowed(node.target):
            add_operator_kind(call, "a function", found)
        if strict is not None and writes_argument(node):
            add_not_functional(call, strict, found)


def check_operators(everything: Sequence[SerialisedGraph], found: ViolationCollector) -> None:
    """Check training mode at each place, and each custom operator once."""
    seen: set[str] = set()
    for path, node in ((graph.path, node) for graph in everything for node in graph.nodes if node.is_operator):
        check_training(
            NodeCall(graph=path, node=node, target=node.target),
            trains=any(
                name in SWITCHES and given.kind == "bool" and given.value is True for name, given in node.inputs
            ),
            found=found,
        )
        namespace, name, overload = node.target.split(".")
        qualified = f"{namespace}::{name}" + ("" if overload == "default" else f".{overload}")
        if namespace not in _OWN and qualified not in seen:
            seen.add(qualified)
            add_custom(NodeCall(graph=path, node=node, target=qualified), found)


def _check_metadata(name: str, call: NodeCall, graph: SerialisedGraph, found: ViolationCollector) -> None:
    if not graph.knows(name):
        add_val_missing(call, f"no metadata of {name}", found)


def _is_allowed(target: str) -> bool:
    if target.startswith("#"):
        # Operators of registered extensions (ExecuTorch's edge dialect).
        return True
    if target.startswith("torch."):
        return target.removeprefix("torch.") in _TORCH or target.startswith(_PREDISPATCH)
    if target.startswith(("operator.", "math.")):
        return target in _BUILTIN
    parts = target.split(".")
    return all(parts) and (len(parts) == 3 or (len(parts) >= 2 and parts[0] == "higher_order"))
