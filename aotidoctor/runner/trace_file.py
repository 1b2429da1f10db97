"""Read the ring that the call trace left in the run directory. It is data from a process that may have been damaged."""

from __future__ import annotations

import struct
from pathlib import Path

from aotidoctor.model.child_protocol import TRACE_FILE
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.trace import Trace, TracedCall

_RECORD = struct.Struct("<IIQ")
_LARGEST = 64 * 1024 * 1024


def read_trace(run_dir: Path, result: JsonObject) -> Trace | None:
    """The trace of a run whose child told its layout in ``result``; None where none was asked for."""
    layout = result.pop("trace", None)
    marks = result.pop("trace_marks", None)
    if not isinstance(layout, dict):
        return None
    if layout.get("problem"):
        return Trace(problem=str(layout["problem"]))
    try:
        with (run_dir / TRACE_FILE).open("rb") as stream:
            data = stream.read(_LARGEST)
        return _decode(data, layout, marks)
    except (OSError, struct.error, TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        return Trace(problem=f"the trace cannot be read: {type(error).__name__}: {error}")


def _decode(data: bytes, layout: JsonObject, marks: JsonValue) -> Trace:
    names = layout["names"]
    if not isinstance(names, list):
        raise TypeError("no names")
    header, records = int(str(layout["header"])), int(str(layout["records"]))
    ticks = float(str(layout["ticks_per_s"]))
    total = int(struct.unpack_from("<Q", data)[0])
    kept = min(total, records)
    read = [_RECORD.unpack_from(data, header + 16 * (index % records)) for index in range(total - kept, total)]
    began = read[0][2] if read else 0
    return Trace(
        calls=tuple(
            TracedCall(symbol=str(names[number]), argument=argument, at=(tick - began) / ticks)
            for number, argument, tick in read
            if number < len(names)
        ),
        total=total,
        slots=int(str(layout["slots"])),
        marks=tuple(mark for mark in marks if isinstance(mark, int)) if isinstance(marks, list) else (),
    )
