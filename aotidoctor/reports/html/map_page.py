"""The page of a map: source, program and calls side by side, a timeline, and the memory over the call.

The page needs nothing else: no server, no network, no font. All of it can be read without the script, which marks what
belongs together, sorts and filters.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.package_map import MapBuffer, MapCall, PackageMap, alive_bytes
from aotidoctor.model.record import record
from aotidoctor.reports.html.html_blocks import template_environment, verdict_icon, with_script_hash
from aotidoctor.reports.package_map_files import BUFFER_HEADINGS, buffer_cells, headline
from aotidoctor.reports.text import one_line, short_time, size
from aotidoctor.version import __version__

MOST_ROWS = 3_000
"""Rows of a table: of more calls, those that take longest."""
_CELL, _BANDS = 160, 8
_WIDTH, _HEIGHT = 1000, 160
_COLORS = {"cpp": "c0", "triton": "c0", "extern": "c1", "custom": "c3"}
_ROLE_NAMES = {"output": "outputs", "activation": "activations", "temporary": "temporaries"}
_ICON = "#0a5fc4"
_KIB = 1024


@record
class MemoryBand:
    """A buffer, or what is left of a role, as an area over the calls."""

    label: str
    look: str
    path: str


def render_map_page(found: PackageMap) -> str:
    """``found`` as a page."""
    ranked = sorted(found.calls, key=_seconds, reverse=True)[:MOST_ROWS]
    listed = sorted(ranked, key=lambda call: call.index)
    page = (
        template_environment()
        .get_template("map.html.jinja")
        .render(
            found=found,
            headline=headline(found),
            rows=[(call.index, _cells(call)) for call in listed],
            left=len(found.calls) - len(listed),
            kinds=sorted({call.kind for call in listed}),
            lines=[(one, _calls_text(one.calls), _microseconds(one.seconds)) for one in found.lines[:MOST_ROWS]],
            nodes=_nodes(found.calls)[:MOST_ROWS],
            buffers=[
                (_calls_text((*one.written, *one.read)), [one_line(cell, _CELL) for cell in buffer_cells(one)])
                for one in _largest(found.buffers)[:MOST_ROWS]
            ],
            buffer_headings=BUFFER_HEADINGS,
            hints=[(hint, _calls_text(hint.calls[:MOST_ROWS])) for hint in found.hints],
            boxes=_boxes(listed),
            bands=memory_bands(found),
            peak_x=f"{_WIDTH * ((found.peak.call or 0) + 0.5) / max(1, len(found.calls)):.1f}",
            width=_WIDTH,
            height=_HEIGHT,
            size=size,
            version=__version__,
            icon=verdict_icon(_ICON),
            **with_script_hash("fleet.js", "map.js"),
        )
    )
    return page + "\n"


def _seconds(call: MapCall) -> tuple[float, int]:
    return (call.time.seconds if call.time is not None else 0.0, call.moved or 0)


def _calls_text(calls: Sequence[int]) -> str:
    return " ".join(map(str, dict.fromkeys(calls)))


def _microseconds(seconds: float | None) -> str:
    return f"{seconds * 1e6:.2f}" if seconds is not None else ""


def _cells(call: MapCall) -> list[str]:
    time = call.time
    cells = (
        call.name,
        call.kind,
        ", ".join(call.operators),
        ", ".join(call.where),
        _microseconds(time.seconds) if time is not None else "",
        f"{_microseconds(time.low)} to {_microseconds(time.high)}" if time is not None else call.state or "",
        f"{time.share * 100:.1f}" if time is not None else "",
        f"{call.moved / _KIB:.1f}" if call.moved is not None else "",
        f"{call.alive / _KIB:.1f}",
        str(call.nonfinite) if call.values else "",
        f"{call.error:.3g}" if call.error is not None else "",
    )
    return [one_line(cell, _CELL) for cell in cells]


def _nodes(calls: Sequence[MapCall]) -> list[tuple[str, str, str]]:
    """Nodes of the program with their calls and the time of those; without nodes, the operators."""
    found: dict[str, list[MapCall]] = {}
    named = any(call.nodes for call in calls)
    for call in calls:
        for node in call.nodes if named else call.operators:
            found.setdefault(node, []).append(call)
    return [
        (
            one_line(node, _CELL),
            _calls_text([call.index for call in made]),
            _microseconds(sum(call.time.seconds for call in made if call.time is not None) or None),
        )
        for node, made in found.items()
    ]


def _largest(buffers: Sequence[MapBuffer]) -> list[MapBuffer]:
    return sorted(buffers, key=lambda one: one.bytes or 0, reverse=True)


# Drawings.
def _boxes(calls: Sequence[MapCall]) -> list[dict[str, object]]:
    """The calls end to end, each as wide as its time; without times all alike."""
    weights = [call.time.seconds if call.time is not None else 0.0 for call in calls]
    if not any(weights):
        weights = [1.0] * len(calls)
    scale, at = _WIDTH / (sum(weights) or 1.0), 0.0
    found: list[dict[str, object]] = []
    for call, weight in zip(calls, weights, strict=True):
        time = f" {short_time(call.time.seconds)}" if call.time is not None else ""
        found.append(
            {
                "call": call.index,
                "x": f"{at:.2f}",
                "width": f"{max(0.2, weight * scale):.2f}",
                "look": _COLORS.get(call.kind, "c7"),
                "title": one_line(f"{call.index} {call.name}{time}", _CELL),
            }
        )
        at += weight * scale
    return found


def memory_bands(found: PackageMap) -> list[MemoryBand]:
    """The largest buffers, then what is left of each role, stacked upon each other."""
    own = [one for one in _largest(found.buffers) if one.role in _ROLE_NAMES and one.pool is None and one.bytes]
    groups = [(one.label, [one]) for one in own[:_BANDS]]
    for role, name in _ROLE_NAMES.items():
        rest = [one for one in own[_BANDS:] if one.role == role]
        if rest:
            groups.append((f"other {name}", rest))
    below, bands = [0] * len(found.calls), []
    highest = max((call.alive for call in found.calls), default=0) or 1
    for number, (label, buffers) in enumerate(groups):
        heights = alive_bytes(buffers, len(found.calls))
        above = [low + height for low, height in zip(below, heights, strict=True)]
        upper, lower = _steps(above, highest), _steps(below, highest)
        path = "M" + " L".join([*upper, *reversed(lower)]) + " Z"
        bands.append(MemoryBand(label=one_line(label, 60), look=f"c{number % 9}", path=path))
        below = above
    return bands


def _steps(values: Sequence[int], highest: int) -> list[str]:
    """The corners of a line that stays at each value for one call, equal neighbours drawn as one."""
    corners, count = [], max(1, len(values))
    for at, value in enumerate(values):
        y = _HEIGHT - _HEIGHT * value / highest
        if at == 0 or values[at - 1] != value:
            corners.append(f"{_WIDTH * at / count:.1f},{y:.1f}")
        if at + 1 == count or values[at + 1] != value:
            corners.append(f"{_WIDTH * (at + 1) / count:.1f},{y:.1f}")
    return corners
