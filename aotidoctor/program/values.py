"""Rules A01 and A10: tensors on several devices, and dtypes that the generated code has no name for."""

from __future__ import annotations

from collections.abc import Container, Sequence

from aotidoctor.model.record import record
from aotidoctor.program.found import Found, Place


@record
class Value:
    """A tensor or a number that a node gives. ``target`` is what the node calls, None for an input of the graph.

    ``name`` is the value's own, ``rank`` None for a number; ``symbols`` are those in its sizes, or in the number.
    """

    graph: str
    node: Place
    name: str
    target: str | None
    rank: int | None = None
    dtype: str = ""
    device: str = ""
    symbols: frozenset[str] = frozenset()


def check_devices(values: Sequence[Value], found: Found) -> None:
    """Single numbers on the CPU go with any device."""
    devices: dict[str, list[Value]] = {}
    for value in values:
        if value.device and (value.device != "cpu" or value.rank):
            devices.setdefault(value.device, []).append(value)
    if len(devices) < 2:
        return
    rare = min(devices, key=lambda name: len(devices[name]))
    first = devices[rare][0]
    counts = ", ".join(f"{len(items)} tensors on {name}" for name, items in devices.items())
    found.add(
        "A01",
        "mixed-device",
        node=first.node,
        graph=first.graph,
        observed=f"{counts}; {first.name} is on {rare}",
        expected="one device",
        devices=tuple(devices),
    )


def check_dtypes(values: Sequence[Value], users: Container[str], nameless: Container[str], found: Found) -> None:
    """Each dtype of ``nameless`` once; ``users`` are the names of the inputs that the caller gives."""
    seen: set[str] = set()
    for value in values:
        if value.dtype not in nameless or value.dtype in seen:
            continue
        seen.add(value.dtype)
        found.add(
            "A10",
            "unsupported-input" if not value.graph and value.name in users else "unsupported",
            node=value.node,
            target=value.target,
            graph=value.graph,
            observed=f"{value.name} is torch.{value.dtype} on {value.device}",
            expected="a dtype that the generated C++ code can name",
            dtype=value.dtype,
        )
