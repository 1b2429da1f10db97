"""The JSON of an exported program as graphs and nodes. Nothing here raises for what the JSON holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aotidoctor.model.exported import Where
from aotidoctor.model.json_types import JsonObject, JsonValue, as_list, as_object
from aotidoctor.model.record import record
from aotidoctor.program.found import Place
from aotidoctor.readers.package.program_facts import names_in

MAX_DEPTH = 64
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in .*)?$')


def as_text(value: JsonValue) -> str:
    """The value if it is text, else nothing. Lone surrogates, which no stream can print, are replaced."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


@record
class Union:
    """A serialised union: ``kind`` is ``tensor`` of ``{"as_tensor": ...}``, empty when it is none."""

    kind: str
    value: JsonValue


def union(value: JsonValue) -> Union:
    """The only entry of an object, without its ``as_``."""
    found = as_object(value)
    if len(found) != 1:
        return Union(kind="", value=None)
    key, inner = next(iter(found.items()))
    return Union(kind=as_text(key).removeprefix("as_"), value=inner)


@record
class Node(Place):
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
class Graph:
    """A graph: ``path`` of the submodule (empty for the top), inputs, nodes, outputs, and the values that it knows."""

    path: str
    inputs: tuple[Union, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Union, ...]
    tensors: JsonObject
    numbers: JsonObject
    objects: JsonObject

    def knows(self, name: str) -> bool:
        """Whether there is metadata of a value."""
        return name in self.tensors or name in self.numbers or name in self.objects


def graphs(document: JsonObject) -> tuple[Graph, ...]:
    """The top graph, then those that it passes to higher-order operators."""
    return tuple(_graphs(as_object(as_object(document.get("graph_module")).get("graph")), "", 0))


def argument_name(item: Union) -> str:
    """Name of the value that a graph's input or output is, empty for a constant."""
    inner = as_object(item.value)
    return as_text(inner.get("name")) or as_text(inner.get("as_name"))


def names_of(item: Union) -> Iterator[str]:
    """Names of all values in an argument: of a tensor, of a list of them."""
    return filter(None, map(as_text, names_in(item.value)))


def _graphs(graph: JsonObject, path: str, depth: int) -> Iterator[Graph]:
    raw = [as_object(node) for node in as_list(graph.get("nodes"))]
    numbers = {**as_object(graph.get("sym_int_values")), **as_object(graph.get("sym_bool_values"))}
    yield Graph(
        path=path,
        inputs=tuple(union(item) for item in as_list(graph.get("inputs"))),
        nodes=tuple(_node(node) for node in raw),
        outputs=tuple(union(item) for item in as_list(graph.get("outputs"))),
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


def _node(raw: JsonObject) -> Node:
    outputs = tuple(union(item) for item in as_list(raw.get("outputs")))
    target = as_text(raw.get("target"))
    given = next((name for item in outputs for name in names_of(item)), "")
    arguments = [as_object(item) for item in as_list(raw.get("inputs"))]
    return Node(
        name=as_text(raw.get("name")) or given,
        target=target[1:] if target.startswith("_operator.") else target.removeprefix("torch.ops."),
        inputs=tuple((as_text(item.get("name")), union(item.get("arg"))) for item in arguments),
        outputs=outputs,
        where=where(as_text(as_object(raw.get("metadata")).get("stack_trace")).splitlines()),
    )


def where(trace: Sequence[str]) -> Where | None:
    """The innermost line of the user's source in a stack trace: modules of torch itself do not count."""
    frames = ((at, match) for at, text in enumerate(trace) if (match := _FRAME.match(text)) is not None)
    found = [(at, match) for at, match in frames if "/site-packages/torch/" not in match["file"]]
    if not found:
        return None
    at, frame = found[-1]
    text = trace[at + 1].strip()[:200] if at + 1 < len(trace) else ""
    return Where(file=frame["file"], line=int(frame["line"]), text=text)
