"""The values of all graphs, and the symbols in them, as the archive's metadata has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.model.json_types import JsonValue, as_integer, as_list, as_object
from aotidoctor.model.program import SizeRange
from aotidoctor.model.program_archive import ProgramArchive
from aotidoctor.program.document import Graph, argument_name, names_of
from aotidoctor.program.found import Place
from aotidoctor.program.symbols import UNBACKED, Places
from aotidoctor.program.values import Value
from aotidoctor.readers.package.program_facts import tensor_meta

NAMELESS = frozenset({"float8_e8m0fnu"})
"""Dtypes that the generated C++ code has no name for."""
_SYMBOL = re.compile(r"^[A-Za-z]+\d+$")


def values(graph: Graph) -> Iterator[Value]:
    """Those of its inputs, then those of its nodes."""
    for item in graph.inputs:
        name = argument_name(item)
        yield from _value(graph, name, Place(name=name), None)
    for node in graph.nodes:
        for item in node.outputs:
            for name in names_of(item):
                yield from _value(graph, name, node, node.target)


def _value(graph: Graph, name: str, node: Place, target: str | None) -> Iterator[Value]:
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
    """Of the symbols that come from data, those that are in the value."""
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


def ranges(archive: ProgramArchive, everything: Sequence[Graph]) -> Mapping[str, SizeRange]:
    """Those of the archive; symbols that come from data and have no entry at all have no bounds."""
    texts = [text for graph in everything for part in (graph.tensors, graph.numbers) for text in _expressions(part, 0)]
    listed = archive.facts.ranges
    return {**listed, **{name: SizeRange() for text in texts for name in UNBACKED.findall(text) if name not in listed}}


def places(archive: ProgramArchive, top: Graph) -> Places:
    """Where each symbol is a size of an input."""
    found: dict[str, list[tuple[str, int | None]]] = {}
    for leaf in archive.facts.leaves:
        for dim, size in enumerate((leaf.tensor and leaf.tensor.shape) or ()):
            if _SYMBOL.match(size):
                found.setdefault(size, []).append((f"{leaf.path}.shape[{dim}]", _example(top, leaf.name, dim)))
    return found


def _example(top: Graph, name: str, dim: int) -> int | None:
    """The sample's size, as the hint in the metadata tells it."""
    sizes = as_list(as_object(top.tensors.get(name)).get("sizes"))
    expression = as_object(as_object(sizes[dim]).get("as_expr")) if dim < len(sizes) else {}
    return as_integer(as_object(expression.get("hint")).get("as_int"))
