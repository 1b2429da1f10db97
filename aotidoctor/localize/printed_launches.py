"""What one launch got, as a package compiled with the value printer (level 2) shows it before it is made."""

from __future__ import annotations

import re

from aotidoctor.localize.printed import read_printed
from aotidoctor.model.localization import BufferValues

_SCALAR = re.compile(r"\[  before_launch - (?P<kernel>\S{1,500}) - (?P<name>[^\s:]+): (?P<value>[^\]\n]{0,300}?)  \]")


def arguments(text: str, kernel: str) -> tuple[str, ...]:
    """What the last launch of ``kernel`` got, one text for each argument; empty when nothing was printed."""
    last = text.rfind(f"before_launch - {kernel} - ")
    end = text.find(f"after_launch - {kernel} - ", max(last, 0))
    shown = text if end < 0 else text[: text.rfind("[", 0, end)]
    calls = [call for call in read_printed(shown) if call.name == kernel]
    tensors = [_words(buffer) for buffer in calls[-1].buffers] if calls else []
    # Of an earlier launch they had the same names.
    scalars = {one["name"]: one["value"].strip() for one in _SCALAR.finditer(shown) if one["kernel"] == kernel}
    return (*tensors, *(f"{name} = {value}" for name, value in scalars.items()))


def _words(buffer: BufferValues) -> str:
    size = "x".join(map(str, buffer.shape)) or "scalar"
    bounds = f", from {buffer.low:g} to {buffer.high:g}" if buffer.low is not None and buffer.high is not None else ""
    bad = "".join(f", {count} {word}" for count, word in ((buffer.nan, "NaN"), (buffer.inf, "Inf")) if count)
    return f"{buffer.name}: {buffer.dtype} {size}{bounds}{bad}"
