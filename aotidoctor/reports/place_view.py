"""The place of a failure in words: what the sections "Where" of the formats for people say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aotidoctor.model.record import record
from aotidoctor.reports.text import one_line, short_name

if TYPE_CHECKING:
    from aotidoctor.model.localization import Frame, Localization, TimelineEntry

_SHOWN = 12
_FRAMES = 10
# Below this frame are only the callers of the model: the loader, Python, the program.
_MODEL = "::run_impl"
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_MARK = "►"


@record
class Excerpt:
    """Lines of a package member around a stack frame; ``title`` names member and line."""

    title: str
    text: str


def place_rows(place: Localization) -> list[tuple[str, str]]:
    """Labelled lines: culprit, how it was found, the blame chain, the fault address."""
    address = place.fault_address
    rows = [
        ("Culprit", place.culprit or ""),
        ("Known by", place.how if place.culprit else ""),
        ("Chain", place.chain or ""),
        ("Compiler", f"the result is right without {place.bisected}" if place.bisected else ""),
        ("Address", f"{address}: {place.fault_target}" if address and place.fault_target else address or ""),
    ]
    return [(label, one_line(text, 600)) for label, text in rows if text]


def timeline_rows(place: Localization, *, whole: bool = False) -> tuple[list[tuple[str, ...]], int]:
    """Rows (mark, name, kind, took, made of) of the last call of the model, and how many calls came before them."""
    last = max((entry.call for entry in place.timeline), default=0)
    entries: Sequence[TimelineEntry] = place.timeline
    if not whole:
        entries = [entry for entry in entries if entry.call == last][-_SHOWN:]
    rows: list[tuple[str, ...]] = [
        (
            _MARK if entry.state == "entered" or (entry.name == place.culprit and entry is entries[-1]) else "",
            short_name(entry.name),
            entry.kind,
            took_text(entry.seconds),
            made_of(entry),
        )
        for entry in entries
    ]
    return rows, len(place.timeline) - len(entries)


def made_of(entry: TimelineEntry) -> str:
    """``aten.add, aten.relu at model.py:7``, as far as the package tells."""
    return " ".join(part for part in (", ".join(entry.origins), f"at {entry.where}" if entry.where else "") if part)


def frame_rows(place: Localization, *, whole: bool = False) -> list[tuple[str, str, str]]:
    """Rows (number, function, place) of the native stack; in short, the telling ones: their numbers show the gaps."""
    frames = place.frames if whole else _telling(_inside(place.frames))
    return [(f"#{frame.index}", _function(frame.function), _place(frame)) for frame in frames]


def _telling(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The innermost ones, but none of them in place of the package's own."""
    own = [frame for frame in frames if frame.member is not None][:_FRAMES]
    others = [frame for frame in frames if frame.member is None][: _FRAMES - len(own)]
    return sorted((*own, *others), key=lambda frame: frame.index)


def _inside(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Down to the frame of the model."""
    last = next((at for at, frame in enumerate(frames) if _MODEL in (frame.function or "")), len(frames))
    return frames[: last + 1]


def _function(name: str | None) -> str:
    """The name without template arguments and argument list, which take lines and tell little."""
    if name is None:
        return "?"
    short, depth = "", 0
    for letter in name.partition("(")[0] if not name.startswith("(") else name:
        depth += letter == "<"
        short += letter if depth == 0 else ""
        depth -= letter == ">" and depth > 0
    return one_line(short or name, 80)


def took_text(seconds: float | None) -> str:
    """``1.5 ms``; kernels take microseconds."""
    if seconds is None:
        return ""
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def source_frame(place: Localization) -> Frame | None:
    """The innermost frame whose source is in the package; without a stack the check that failed."""
    frames = (*place.frames, place.check) if place.check is not None else place.frames
    return next((frame for frame in frames if frame.lines), None)


def excerpt(place: Localization) -> Excerpt | None:
    """The lines of ``source_frame``."""
    frame = source_frame(place)
    if frame is None:
        return None
    width = len(str(frame.lines[-1].number))
    lines = [f"{_MARK if line.marked else ' '} {line.number:>{width}}  {line.text}" for line in frame.lines]
    return Excerpt(title=_place(frame), text="\n".join(lines))


def _place(frame: Frame) -> str:
    where = frame.member or frame.file or frame.library or ""
    name = where.rpartition("/")[2]
    return f"{name}:{frame.line}" if frame.line is not None and name else name
