"""Typed reading of the ``run`` job's result: the one place that knows its JSON. Odd values read as nothing."""

from __future__ import annotations

from dataclasses import dataclass

from aotidoctor.model.json_types import JsonObject, JsonValue, items, objects
from aotidoctor.model.run import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor that the child looked at. Counts are elements; ``digest`` is of the bytes."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    nan: int
    inf: int
    digest: str
    changed: bool
    aliases_inputs: tuple[int, ...]
    aliases_outputs: tuple[int, ...]
    low: float | None
    high: float | None


def outputs(outcome: Outcome, call: int) -> list[Value]:
    """Outputs of call number ``call`` (from 0); empty when it was not made."""
    calls = items(outcome.result.get("outputs"))
    return [_value(item) for item in objects(calls[call])] if 0 <= call < len(calls) else []


def calls_made(outcome: Outcome) -> int:
    """How many calls returned outputs."""
    return len(items(outcome.result.get("outputs")))


def inputs(outcome: Outcome) -> list[Value]:
    """Input tensors as the child saw them; ``changed`` tells whether a call wrote to them."""
    return [_value(item) for item in objects(outcome.result.get("inputs"))]


def constants(outcome: Outcome) -> list[Value]:
    """Constants of the package that the child could read."""
    return [_value(item) for item in objects(outcome.result.get("constants"))]


def resident_sizes(outcome: Outcome) -> list[int]:
    """Resident set size in bytes after each call."""
    return [int(item) for item in items(outcome.result.get("rss")) if isinstance(item, int | float)]


def reference(outcome: Outcome) -> JsonObject:
    """The comparison with the reference; empty when there was none."""
    found = outcome.result.get("reference")
    return found if isinstance(found, dict) else {}


def same_outputs(a: list[Value], b: list[Value]) -> bool:
    """Bit for bit the same, in number, dtype, shape and bytes."""
    return [(v.dtype, v.shape, v.digest) for v in a] == [(v.dtype, v.shape, v.digest) for v in b]


def _value(item: JsonObject) -> Value:
    return Value(
        path=str(item.get("path") or item.get("name") or ""),
        dtype=str(item.get("dtype") or ""),
        shape=tuple(_int(size) for size in items(item.get("shape"))),
        nan=_int(item.get("nan")),
        inf=_int(item.get("inf")),
        digest=str(item.get("sha256") or ""),
        changed=item.get("changed") is True,
        aliases_inputs=tuple(_int(index) for index in items(item.get("aliases_inputs"))),
        aliases_outputs=tuple(_int(index) for index in items(item.get("aliases_outputs"))),
        low=_float(item.get("min")),
        high=_float(item.get("max")),
    )


def _int(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _float(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) else None
