"""Parse what a package compiled with the value printer printed (level 2) or saved (level 1), per call.

As measured: *before* a launch the printer shows output buffers too, with whatever their memory holds; the output of a
convolution, and whatever a custom operator reads and writes, is shown by the next kernel that reads it, not before;
constants are not shown; values are shown for up to 64 elements, else smallest, largest and mean alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.model.contract import KernelBody, KernelCall, KernelParameter
from aotidoctor.model.localization import BufferValues, KernelValues, WatchedTensor
from aotidoctor.model.printer_lines import FACT, HEADER, LAUNCH, SCALAR, VALUES, launch_header
from aotidoctor.model.record import JsonObject, JsonValue, as_object, objects
from aotidoctor.model.record_json import read_fitting

_NAN, _INF = re.compile(r"(?<!\w)-?nan\b"), re.compile(r"(?<!\w)-?inf\b")
_HANDLE = re.compile(r"\w+")


@dataclass(slots=True)
class _PrinterCall:
    """One launch while it is read: what each buffer held before and after."""

    name: str
    before: dict[str, BufferValues] = field(default_factory=dict)
    after: dict[str, BufferValues] = field(default_factory=dict)
    marks: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _PackageNames:
    """Which call wrote what so far: by buffer, and by what a buffer then held. ``met`` are all buffers so far."""

    written: dict[str, int] = field(default_factory=dict)
    contents: dict[str, int] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)


def printed_launches(text: str) -> tuple[tuple[str, bool], ...]:
    """The kernels of level 3 in the order of their launches, and whether each returned."""
    found: list[tuple[str, bool]] = []
    for when, kernel in LAUNCH.compiled.findall(text):
        if when == "before":
            found.append((kernel, False))
        elif found and found[-1] == (kernel, False):
            found[-1] = (kernel, True)
    return tuple(found)


def read_value_printer(
    text: str, order: Sequence[KernelCall] = (), bodies: Sequence[KernelBody] = ()
) -> tuple[KernelValues, ...]:
    """The calls of level 2: all of ``order`` (the package's) with what was printed; without it those that printed.

    A buffer without a known writer is given to the last earlier call of ``order`` that had it as an argument.
    """
    calls: list[_PrinterCall] = []
    headers = list(HEADER.compiled.finditer(text))
    for at, header in enumerate(headers):
        if header["when"] is None or header["scalar"] is not None:
            continue
        end = headers[at + 1].start() if at + 1 < len(headers) else len(text)
        body = text[header.end() : end]
        _add_values(calls, header["when"], header["kernel"], _values(header["buffer"], body), body.strip())
    return _describe_calls(calls, order, bodies)


def read_saved_values(
    records: JsonValue, order: Sequence[KernelCall], bodies: Sequence[KernelBody] = ()
) -> tuple[KernelValues, ...]:
    """The calls of level 1, from files; without kernels that are called more than once, which keep only the last."""
    once = [call for call in order if sum(other.name == call.name for other in order) == 1]
    found: dict[str, list[JsonObject]] = {}
    for record in objects(records):
        found.setdefault(str(record.get("kernel")), []).append(record)
    calls: list[_PrinterCall] = []
    for call in once:
        for when in ("before", "after"):
            for record in found.get(call.name, []):
                if record.get("when") == when:
                    values = {**record, **as_object(record.get("near")), "name": str(record.get("buffer"))}
                    tensor = read_fitting(WatchedTensor, values, {})
                    _add_values(calls, when, call.name, tensor.as_buffer(tensor.name, "in"), str(record.get("sha256")))
    return _describe_calls(calls, order, bodies)


def _add_values(calls: list[_PrinterCall], when: str, kernel: str, values: BufferValues, mark: str) -> None:
    """Add what one buffer held. A new launch begins with a *before* that follows an *after*, or repeats a buffer."""
    last = calls[-1] if calls else None
    again = last is not None and when == "before" and (bool(last.after) or values.name in last.before)
    if last is None or last.name != kernel or again:
        last = _PrinterCall(kernel)
        calls.append(last)
    (last.before if when == "before" else last.after)[values.name] = values
    first = last.marks.get(values.name, ("", ""))[0]
    last.marks[values.name] = (mark, first) if when == "before" else (first, mark)


def _describe_calls(
    calls: Sequence[_PrinterCall], order: Sequence[KernelCall], bodies: Sequence[KernelBody]
) -> tuple[KernelValues, ...]:
    places = _places(calls, order)
    book = _PackageNames()
    made: dict[int, KernelValues] = {}
    for number, call in enumerate(calls):
        at = places[number]
        static = order[at] if at < len(order) else None
        known = book.met | {name for earlier in order[:at] for name in _names(earlier)} if order else book.met
        # Which parameter of a generated kernel each buffer is; empty where its source does not tell.
        body = next((body for body in bodies if static is not None and body.name == static.name), None)
        parts: dict[str, KernelParameter] = {}
        if static is not None and body is not None and len(body.parameters) == len(static.arguments):
            parts = dict(zip(static.arguments, body.parameters, strict=True))
        buffers = tuple(one for name in call.marks for one in _buffers(call, name, parts.get(name), known, book))
        made[at] = KernelValues(index=at, name=call.name, kind=static.kind if static else "extern", buffers=buffers)
        for read in made[at].read:
            if read.written_by is None and read.name.startswith("buf"):
                _blame(made, order, at, read, book)
        outs = [buffer.name for buffer in made[at].wrote]
        book.written |= dict.fromkeys(outs, at)
        book.contents |= {call.marks[name][1]: at for name in outs if name in call.marks}
        book.met |= set(call.marks)
    # As many as the package has calls, so that a call is found under its number.
    for at, static in enumerate(order):
        made.setdefault(at, KernelValues(index=at, name=static.name, kind=static.kind))
    return tuple(made[at] for at in sorted(made))


def _places(calls: Sequence[_PrinterCall], order: Sequence[KernelCall]) -> list[int]:
    """The place of each launch in the package's order of calls; where names do not fit, its own number."""
    places, start = [], 0
    for call in calls:
        at = next((at for at in range(start, len(order)) if order[at].name == call.name), None)
        if at is None:
            return list(range(len(calls)))
        places.append(at)
        start = at + 1
    return places


def _buffers(
    call: _PrinterCall, name: str, part: KernelParameter | None, known: set[str], book: _PackageNames
) -> tuple[BufferValues, ...]:
    """What the launch read and wrote of one buffer: by the kernel's signature, else by what changed.

    Without a signature an output is what the launch changed, or what nobody before it has had to do with.
    """
    before, after = call.marks[name]
    values = call.after.get(name) or call.before[name]
    if part is None:
        changed = bool(before and after) and before != after
        out, read = changed or (not name.startswith("arg") and name not in known), False
    else:
        out, read = not part.const, part.name.startswith("in_out")
    if not out:
        return (replace(values, role="in", written_by=book.written.get(name)),)
    written = replace(values, role="out")
    if not read or name not in call.before:
        return (written,)
    # Its memory may have had another name: then its content tells who wrote it.
    writer = book.written.get(name, book.contents.get(before))
    return (replace(call.before[name], role="in", written_by=writer), written)


def _blame(
    made: dict[int, KernelValues], order: Sequence[KernelCall], at: int, read: BufferValues, book: _PackageNames
) -> None:
    """Give what a call read, and no call was seen writing, to the last one before it that had it as an argument."""
    writer = next((n for n in range(min(at, len(order)) - 1, -1, -1) if read.name in _names(order[n])), None)
    if writer is None:
        return
    call = made.get(writer) or KernelValues(index=writer, name=order[writer].name, kind=order[writer].kind)
    made[writer] = replace(call, buffers=(*call.buffers, replace(read, role="out")))
    book.written[read.name] = writer
    buffers = tuple(replace(b, written_by=writer) if b is read else b for b in made[at].buffers)
    made[at] = replace(made[at], buffers=buffers)


def _names(call: KernelCall) -> set[str]:
    """Buffers among the arguments: ``&buf3_handle`` is ``buf3``."""
    return {word.removesuffix("_handle") for argument in call.arguments for word in _HANDLE.findall(argument)}


def _values(name: str, body: str) -> BufferValues:
    """Statistics of one block. Without the values themselves a count of NaN or Inf is 1: there are some."""
    facts = dict(FACT.compiled.findall(body))
    low, high = _number(facts.get("Min value")), _number(facts.get("Max value"))
    printed, shape = body.partition(VALUES)[0], facts.get("Size", "")
    listed = VALUES in body
    bounds = [value for value in (low, high) if value is not None]
    return BufferValues(
        name=name,
        role="in",
        dtype=facts.get("Dtype", ""),
        shape=tuple(int(size) for size in re.findall(r"\d+", shape)),
        nan=len(_NAN.findall(printed)) if listed else int(any(math.isnan(value) for value in bounds)),
        inf=len(_INF.findall(printed)) if listed else int(any(math.isinf(value) for value in bounds)),
        low=_finite(low),
        high=_finite(high),
        mean=_finite(_number(facts.get("Mean value"))),
    )


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def launch_arguments(text: str, kernel: str) -> tuple[str, ...]:
    """The arguments of the last launch of ``kernel``, one text for each; empty when nothing was printed."""
    last = text.rfind(launch_header("before", kernel))
    end = text.find(launch_header("after", kernel), max(last, 0))
    printed = text if end < 0 else text[: text.rfind("[", 0, end)]
    calls = [call for call in read_value_printer(printed) if call.name == kernel]
    tensors: list[str] = []
    for one in calls[-1].buffers if calls else ():
        size = "x".join(map(str, one.shape)) or "scalar"
        bounds = f", from {one.low:g} to {one.high:g}" if one.low is not None and one.high is not None else ""
        bad = "".join(f", {count} {word}" for count, word in ((one.nan, "NaN"), (one.inf, "Inf")) if count)
        tensors.append(f"{one.name}: {one.dtype} {size}{bounds}{bad}")
    # Of an earlier launch they had the same names.
    scalars = {
        one["name"]: one["value"].strip() for one in SCALAR.compiled.finditer(printed) if one["kernel"] == kernel
    }
    return (*tensors, *(f"{name} = {value}" for name, value in scalars.items()))
