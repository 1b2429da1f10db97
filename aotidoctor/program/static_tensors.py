"""Rules A01 and A10 from the metadata of values: devices and dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.model.json_types import JsonObject, as_integer, as_list, as_object
from aotidoctor.model.program_archive import ProgramArchive
from aotidoctor.model.record import record
from aotidoctor.program.document import Graph, Node, argument_name, as_text, names_of
from aotidoctor.program.found import Found

# ScalarType -> dtypes that the generated C++ code has no name for.
_NO_CODE = {33: "float8_e8m0fnu"}


@record
class _Value:
    graph: str
    name: str
    node: Node | None
    meta: JsonObject


def check_tensors(archive: ProgramArchive, everything: Sequence[Graph], found: Found) -> None:
    """All tensors of all graphs."""
    values = [value for graph in everything for value in _values(graph)]
    _check_devices(values, found)
    _check_dtypes(archive, values, found)


def _values(graph: Graph) -> Iterator[_Value]:
    for item in graph.inputs:
        name = argument_name(item)
        if name in graph.tensors:
            yield _Value(graph=graph.path, name=name, node=None, meta=as_object(graph.tensors[name]))
    for node in graph.nodes:
        for output in node.outputs:
            for name in names_of(output):
                if name in graph.tensors:
                    yield _Value(graph=graph.path, name=name, node=node, meta=as_object(graph.tensors[name]))


def _check_devices(values: Sequence[_Value], found: Found) -> None:
    """Single numbers on the CPU go with any device."""
    devices: dict[str, list[_Value]] = {}
    for value in values:
        device = as_object(value.meta.get("device"))
        kind, index = as_text(device.get("type")), as_integer(device.get("index"))
        if kind and not (kind == "cpu" and not as_list(value.meta.get("sizes"))):
            devices.setdefault(kind if index is None else f"{kind}:{index}", []).append(value)
    if len(devices) < 2:
        return
    rare = min(devices, key=lambda name: len(devices[name]))
    first = devices[rare][0]
    counts = ", ".join(f"{len(items)} tensors on {name}" for name, items in devices.items())
    found.add(
        "A01",
        "mixed-device",
        node=first.node or first.name,
        graph=first.graph,
        observed=f"{counts}; {first.name} is on {rare}",
        expected="one device",
        devices=tuple(devices),
    )


def _check_dtypes(archive: ProgramArchive, values: Sequence[_Value], found: Found) -> None:
    users = {leaf.name for leaf in archive.facts.leaves}
    seen: set[str] = set()
    for value in values:
        dtype = _NO_CODE.get(as_integer(value.meta.get("dtype")) or 0)
        if dtype is None or dtype in seen:
            continue
        seen.add(dtype)
        found.add(
            "A10",
            "unsupported-input" if not value.graph and value.name in users else "unsupported",
            node=value.node or value.name,
            target=value.node.target if value.node is not None else None,
            graph=value.graph,
            observed=f"{value.name} is torch.{dtype} on {as_text(as_object(value.meta.get('device')).get('type'))}",
            expected="a dtype that the generated C++ code can name",
            dtype=dtype,
        )
