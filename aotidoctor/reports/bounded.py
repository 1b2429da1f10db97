"""No document is above 8 MB: beyond that, long lists and texts are cut, and the document says how much of them.

What a reader or a tool does with a report of a hundred megabytes is nothing. A package of a stranger can ask for one
(thousands of inputs, names of a megabyte), so what is shown is bounded whatever is in it; what is cut is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from typing import TypeVar

from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.phrases import listed
from aotidoctor.model.report import Report
from aotidoctor.reports.renamed import with_fields

T = TypeVar("T")

MOST = 8 << 20
"""Bytes of a document in UTF-8."""
CODE = "AD-LIMIT"

# Entries of each list and characters of each text that are kept, mildest first. The last fits whatever is nested.
_STEPS = ((20_000, 1_000_000), (5_000, 200_000), (1_000, 40_000), (200, 8_000), (40, 1_000), (8, 200))
_NAMED = 3


def bounded(report: Report, render: Callable[[Report], str]) -> str:
    """``render(report)``, or that of the report with its longest parts cut so that it has at most ``MOST`` bytes."""
    text = render(report)
    for entries, characters in _STEPS:
        if _size(text) <= MOST:
            break
        text = render(_Cutter(entries, characters).report(report))
    return text


def _size(text: str) -> int:
    # A character is one to four bytes: most texts need no encoding to know.
    return len(text) if len(text) > MOST or 4 * len(text) <= MOST else len(text.encode("utf-8", "replace"))


class _Cutter:
    def __init__(self, entries: int, characters: int) -> None:
        self._entries, self._characters = entries, characters
        self._cut: Counter[str] = Counter()

    def report(self, report: Report) -> Report:
        short = self._walk(report, "")
        if not self._cut:
            return report
        named = listed([f"{place} ({count:,})" for place, count in self._cut.most_common()], _NAMED)
        reason = (
            f"this document would exceed {MOST >> 20} MB: lists are cut at {self._entries:,} entries and texts at "
            f"{self._characters:,} characters; left out in {named}"
        )
        return replace(short, not_checked=(*short.not_checked, NotChecked(code=CODE, name="report", reason=reason)))

    def _walk(self, value: T, place: str) -> T:
        """``value`` with its long parts cut; the very same object where there are none."""
        result: object = value
        if isinstance(value, str):
            result = self._text(value, place)
        elif is_dataclass(value) and not isinstance(value, type):
            before = f"{place}." if place else ""
            result = with_fields(value, lambda name, item: self._walk(item, f"{before}{name}"))
        elif isinstance(value, Mapping):
            kept = list(value.items())[: self._entries]
            self._count(place, len(value) - len(kept))
            result = {self._walk(key, place): self._walk(item, place) for key, item in kept}
        elif isinstance(value, (tuple, list)):
            self._count(place, len(value) - self._entries)
            result = type(value)(self._walk(item, place) for item in value[: self._entries])
        return result  # type: ignore[return-value]  # each branch keeps the type of what it was given

    def _text(self, text: str, place: str) -> str:
        # Values of enums are texts, too, and stay what they are.
        if type(text) is not str or len(text) <= self._characters:
            return text
        self._count(place, len(text) - self._characters)
        return text[: self._characters] + "…"

    def _count(self, place: str, more: int) -> None:
        if more > 0:
            self._cut[place] += more
