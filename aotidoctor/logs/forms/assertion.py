"""Assertions: those of GPU kernels, one line per thread, and those of the C library."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, end_below, lines_found, numbered
from aotidoctor.logs.line import Line

START = re.compile(r"[Aa]ssertion `|: Assertion |device-side assert|\bDebug Assertion Failed\b")
_DEVICE = re.compile(r"block: \[\d+,\s*\d+,\s*\d+\], thread: \[\d+,\s*\d+,\s*\d+\],? Assertion")
# The second is Microsoft's C library.
_HOST = re.compile(r"Assertion [`'].{1,800}?' failed|\bDebug Assertion Failed\b")
_MOST = 100_000


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The assertion at ``at``, with all lines of further threads that follow at once."""
    text = lines[at].text
    if _DEVICE.search(text):
        end = end_below(lines, at, _DEVICE, _MOST)
        return Found(form="assert", kind="device", said=numbered(lines[at : at + 1]), first=at, end=end, stage="run")
    if _HOST.search(text):
        return lines_found(lines, at, at + 1, form="assert", kind="SIGABRT")
    return None
