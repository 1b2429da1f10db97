"""Write the map of a package as text, JSON, a trace for Perfetto, and node data for Model Explorer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TextIO

from aotidoctor.model.evidence import plural
from aotidoctor.model.package_map import MAP_SCHEMA, ROLES, MapBuffer, MapCall, PackageMap, alive_bytes
from aotidoctor.reports.json.json_report import dump_json
from aotidoctor.reports.page.blocks import NoteBlock, PageSection, Pairs, TableBlock, text_lines
from aotidoctor.reports.terminal.terminal_layout import sections_text
from aotidoctor.reports.text import one_line, short_time, size
from aotidoctor.version import __version__

CALL_HEADINGS = ("#", "Call", "Operators", "Source", "Time", "Share", "Moved", "Alive", "Values")
BUFFER_HEADINGS = ("Buffer", "Role", "Type", "Shape", "Size", "Calls", "Also")
_LISTED = 12


# Cells.
def headline(found: PackageMap) -> str:
    """The map in one line."""
    run, peak = found.run, found.peak
    parts = [plural(len(found.calls), "call")]
    if run is not None and run.seconds is not None:
        spread = f" ({short_time(run.low)} to {short_time(run.high)})" if run.low and run.high else ""
        parts.append(f"{short_time(run.seconds)}{spread} in {plural(run.runs, 'timed call')} of the model")
    if peak.call is not None:
        least = "at least " if peak.unknown else ""
        parts.append(f"peak {least}{size(peak.bytes)} in call {peak.call} ({found.calls[peak.call].name})")
    if peak.allocated is not None:
        parts.append(f"{size(peak.allocated)} allocated at most")
    return "; ".join([*parts, f"weights {size(peak.weights)}, inputs {size(peak.inputs)}"])


def call_cells(call: MapCall) -> tuple[str, ...]:
    """A call under ``CALL_HEADINGS``."""
    time = call.time
    return (
        str(call.index),
        call.name,
        ", ".join(call.operators),
        ", ".join(call.where),
        short_time(time.seconds) if time is not None else call.state or "",
        f"{time.share:.1%}" if time is not None else "",
        size(call.moved) if call.moved is not None else "",
        size(call.alive),
        _values_text(call),
    )


def _values_text(call: MapCall) -> str:
    parts = []
    if call.nonfinite:
        parts.append(f"{plural(call.nonfinite, 'element')} NaN or Inf")
    wrote = [one for one in call.values if one.role == "out" and one.low is not None and one.high is not None]
    if wrote:
        low, high = min(one.low or 0.0 for one in wrote), max(one.high or 0.0 for one in wrote)
        parts.append(f"{low:.4g} to {high:.4g}")
    if call.error is not None:
        parts.append(f"off by {call.error:.2g}")
    return "; ".join(parts)


def buffer_cells(buffer: MapBuffer) -> tuple[str, ...]:
    """A buffer under ``BUFFER_HEADINGS``."""
    known = size(buffer.bytes) if buffer.bytes is not None else buffer.size or "?"
    return (
        buffer.label,
        buffer.role,
        buffer.dtype or "?",
        f"[{', '.join(buffer.shape)}]" if buffer.shape is not None else "?",
        known if buffer.pool is None else f"{known} in {buffer.pool}",
        f"{buffer.first} to {buffer.last}",
        ", ".join(buffer.names),
    )


# A terminal.
def map_text(found: PackageMap, *, stream: TextIO, environ: Mapping[str, str], whole: bool) -> str:
    """``found`` for a terminal: the first calls by time (or by bytes), what lives at the peak, and notes."""
    ranked = sorted(found.calls, key=_weight, reverse=True)
    listed = ranked if whole else ranked[:_LISTED]
    buffers = {buffer.name: buffer for buffer in found.buffers}
    alive = [buffers[name] for name in found.peak.alive][: None if whole else _LISTED]
    left = len(ranked) - len(listed)
    more = (NoteBlock(words=f"{left} more calls: -v, or --format json"),) if left else ()
    untried = [(hint.kind, hint.text + (f"; untried: {hint.advice}" if hint.advice else "")) for hint in found.hints]
    sections = [
        PageSection(
            id="map",
            title="Map",
            blocks=(Pairs(rows=[("Map", headline(found)), *(("Note", one) for one in found.notes)]),),
        ),
        PageSection(id="hints", title="Look at", blocks=(Pairs(rows=untried),) if untried else ()),
        PageSection(
            id="calls",
            title="Calls",
            blocks=(
                TableBlock(
                    label="Calls", headings=CALL_HEADINGS, rows=text_lines([_cut(call_cells(one)) for one in listed])
                ),
                *more,
            ),
        ),
        PageSection(
            id="memory",
            title=f"Memory alive in call {found.peak.call}",
            blocks=(
                TableBlock(
                    label="Memory",
                    headings=BUFFER_HEADINGS,
                    rows=text_lines([_cut(buffer_cells(one)) for one in alive]),
                ),
            )
            if alive
            else (),
        ),
    ]
    return sections_text([one for one in sections if one.blocks], stream=stream, environ=environ)


def _weight(call: MapCall) -> tuple[float, int, int]:
    return (call.time.seconds if call.time is not None else 0.0, call.moved or 0, -call.index)


def _cut(cells: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one_line(cell, 48) for cell in cells)


# JSON.
def map_document(found: PackageMap) -> str:
    """The whole map, schema ``aotidoctor.map/1``."""
    body = {one.name: getattr(found, one.name) for one in fields(found)}
    return dump_json({"schema": MAP_SCHEMA, "tool": {"name": "aotidoctor", "version": __version__}, **body})


# Traces. Chrome's JSON of events, which Perfetto reads.
def trace_document(found: PackageMap) -> str:
    """The calls one after the other, each as long as its median, and the memory as counters; times in microseconds."""
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"{found.package} (medians, end to end)"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "calls"}},
    ]
    own = [one for one in found.buffers if one.pool is None]
    memory = {role: alive_bytes([one for one in own if one.role == role], len(found.calls)) for role in ROLES[2:]}
    at = 0.0
    for call in found.calls:
        if call.time is None:
            continue
        long = call.time.seconds * 1e6
        arguments = {
            "call": call.index,
            "operators": call.operators,
            "nodes": call.nodes,
            "where": call.where,
            "bytes_moved": call.moved,
            "quartiles_us": [call.time.low * 1e6, call.time.high * 1e6],
        }
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": 1,
                "ts": at,
                "dur": long,
                "name": call.name,
                "cat": call.kind,
                "args": arguments,
            }
        )
        counters = {role: alive[call.index] for role, alive in memory.items()}
        events.append({"ph": "C", "pid": 1, "ts": at, "name": "memory", "args": counters})
        at += long
    document: dict[str, object] = {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"tool": f"aotidoctor {__version__}"},
    }
    return dump_json(document)


_COLORS = ("#e5f4ea", "#e5484d")


def explorer_document(found: PackageMap) -> str:
    """Microseconds by node of the exported program; a call that several nodes share counts for each of them."""
    by_node: dict[str, float] = {}
    for call in found.calls:
        for node in call.nodes:
            if call.time is not None:
                by_node[node] = by_node.get(node, 0.0) + call.time.seconds * 1e6
    results = {node: {"value": value} for node, value in by_node.items()}
    gradient = [{"stop": stop, "bgColor": color} for stop, color in enumerate(_COLORS)]
    return dump_json({"main": {"results": results, "gradient": gradient}})
