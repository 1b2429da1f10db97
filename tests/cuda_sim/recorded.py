"""Outcomes as JSON and back: what simulated runs gave, kept for tests that need neither the simulation nor torch."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from aotidoctor.model import case, run
from aotidoctor.model.record_json import from_json
from aotidoctor.model.run import Request
from aotidoctor.worker import JOBS

TYPES = {
    kind.__name__: kind
    for module in (run, run, case)
    for kind in vars(module).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind)
}
ROOT = Path(__file__).resolve().parents[2]
# Native frames are addresses of one process; what a run took and where it lay says nothing about it.
FRAMES = re.compile(r"\nframe #0: .*", re.DOTALL)
PRIVATE = frozenset(
    {"argv", "seconds", "stages", "peak_rss", "stdout_bytes", "stderr_bytes", "traceback", "environment"}
)


def dump(value: Any, places: dict[str, str]) -> Any:
    """As JSON: dataclasses with their type's name and without defaults; ``places`` are texts to put words for."""
    if dataclasses.is_dataclass(value):
        fields = {
            field.name: dump(getattr(value, field.name), places)
            for field in dataclasses.fields(value)
            if field.name not in PRIVATE and getattr(value, field.name) != default_of(field)
        }
        return {"type of": type(value).__name__, **fields}
    if isinstance(value, str):
        return plain(value, places)
    if isinstance(value, (list, tuple)):
        return [dump(item, places) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(dump(item, places) for item in value)
    if hasattr(value, "items"):
        return {str(key): dump(item, places) for key, item in value.items() if key not in PRIVATE}
    return value


def plain(text: str, places: dict[str, str]) -> str:
    """Without native frames, and with words for the folders of this machine."""
    text = FRAMES.sub("", text)
    for place, word in places.items():
        text = text.replace(place, word)
    return re.sub(r"/tmp/aotidoctor-\w+/R(\d+)-\w+", r"<run \1>", text)


def load(value: Any) -> Any:
    """The dataclasses again; lists of a dataclass become tuples, as the vocabulary has them."""
    if isinstance(value, dict) and "type of" in value:
        kind = TYPES[value["type of"]]
        given = {name: tupled(name, load(item)) for name, item in value.items() if name != "type of"}
        if kind is Request:
            given["payload"] = from_json(JOBS[given["job"]][2], given["payload"])
        return kind(**given)
    if isinstance(value, dict):
        return {name: load(item) for name, item in value.items()}
    return [load(item) for item in value] if isinstance(value, list) else value


def tupled(name: str, value: Any) -> Any:
    return tuple(value) if isinstance(value, list) and name not in {"result", "payload"} else value


def default_of(field: dataclasses.Field) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else dataclasses.MISSING
