"""Read the side channel: what a child told about itself before it ended, in whatever way it ended.

The file is data from a process that may have been damaged: lines that are no record are counted, never raised.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.run import ChildError

_MAX_BYTES = 64 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Readout:
    """All that the channel says. ``entered`` are ``(stage, monotonic seconds)`` in order."""

    entered: list[tuple[str, float]] = field(default_factory=list)
    result: JsonObject = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: ChildError | None = None
    fatal: ChildError | None = None
    done: bool = False
    ended: float | None = None
    unreadable: int = 0

    @property
    def stage(self) -> str:
        """The stage entered last; ``start`` when the child never told."""
        return self.entered[-1][0] if self.entered else "start"

    def remarks(self) -> tuple[str, ...]:
        """The child's Python warnings, and ours about the channel."""
        odd = f"side channel: {self.unreadable} lines were not valid records"
        return (*self.warnings, odd) if self.unreadable else tuple(self.warnings)

    def seconds(self) -> dict[str, float]:
        """Seconds of each finished stage; of one entered several times, the sum."""
        ends = [at for _, at in self.entered[1:]]
        if self.ended is not None:
            ends.append(self.ended)
        sums: dict[str, float] = {}
        for (stage, at), end in zip(self.entered, ends, strict=False):
            sums[stage] = round(sums.get(stage, 0.0) + end - at, 6)
        return sums


def read_channel(path: Path) -> Readout:
    """Read all records of the file at ``path``; a missing file is an empty readout."""
    readout = Readout()
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES)
    except OSError:
        return readout
    for line in data.splitlines():
        if line.strip():
            _take(line, readout)
    return readout


def _take(line: bytes, readout: Readout) -> None:
    try:
        record: JsonValue = json.loads(line)
    except (ValueError, RecursionError):
        readout.unreadable += 1
        return
    if not isinstance(record, dict) or not _note(record, readout):
        readout.unreadable += 1


def _note(record: JsonObject, readout: Readout) -> bool:
    """Put ``record`` into ``readout``; False when it is none of ours."""
    match record:
        case {"stage": str(stage), "t": int() | float() as at}:
            readout.entered.append((stage, float(at)))
        case {"put": dict(values)}:
            readout.result.update(values)
        case {"warning": str(text)}:
            readout.warnings.append(text)
        case {"error": dict(error)}:
            readout.error, readout.done = child_error(error), True
        case {"fatal": dict(error)}:
            readout.fatal = child_error(error)
        case {"done": True, "t": int() | float() as at}:
            readout.done, readout.ended = True, float(at)
        case {"too_large": int(size)}:
            readout.warnings.append(f"a part of the result was omitted: {size} bytes")
        case _:
            return False
    return True


def child_error(record: JsonObject) -> ChildError:
    """An exception as a child wrote it down."""
    return ChildError(
        type=str(record.get("type", "")),
        message=str(record.get("message", "")),
        traceback=str(record.get("traceback", "")),
    )
