"""Make text safe to show and bounded, and compute the exit status.

Text of a child process, a file name or a package may hold escape sequences that move the cursor, NUL bytes, lone
surrogates and bidirectional overrides. All formats show only what ``plain`` leaves of it.

No document is above 8 MB: beyond that, long lists and texts are cut, and the document says how much of them. A package
of a stranger can ask for a report of a hundred megabytes (thousands of inputs, names of a megabyte).

The exit status is the same for every format. `--help` loads this module, so it imports nothing but the standard
library, ``model`` and ``interruption``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar, cast

from aotidoctor import interruption
from aotidoctor.model.errors import CANNOT_EXAMINE, INTERNAL_ERROR, OK, OUT_OF_TIME, PROBLEM, UNKNOWN
from aotidoctor.model.evidence import NotChecked, list_names, plural, shorten
from aotidoctor.model.record import record
from aotidoctor.model.report import Report

# The first line of a document, and the colours of its tone.
COLORS = {"good": "#1a7f37", "bad": "#c62828", "unsure": "#9a6700", "partial": "#7b3fb3"}


@record(kw_only=False)
class Headline:
    """The first line. ``tone`` is a key of ``COLORS``."""

    word: str
    text: str
    tone: str


# Safe text, sizes and durations.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~]?)"
)
_SPOKEN = "\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
_CONTROLS = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{_SPOKEN}\ud800-\udfff]")
_IN_JSON = re.compile(f"[{_SPOKEN}]")


def plain(text: str) -> str:
    r"""``text`` without escape sequences; other control characters become ``\ufffd``. Newlines and tabs stay."""
    without = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("\ufffd", without)


def neutral(text: str) -> str:
    r"""``text`` with ``\ufffd`` for each character that a terminal would obey, and as long as before."""
    return _CONTROLS.sub("\ufffd", text).replace("\r", "\ufffd")


def escaped_json(document: str) -> str:
    r"""A JSON document with ``\u009b`` for what a terminal or an editor would obey; its meaning is the same."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def one_line(text: str, limit: int = 300) -> str:
    """``plain`` text on one line, cut to ``limit`` characters with the count of what is missing.

    The limit is against texts without sense: names, commands and messages are shorter, and every layout folds them.
    """
    return shorten(" ".join(plain(text).split()), limit)


def tail(text: str, characters: int) -> str:
    """The last ``characters`` of ``plain`` text, from the start of a line, with the count of what is missing."""
    clean = plain(text).rstrip("\n")
    if len(clean) <= characters:
        return clean
    last = clean[len(clean) - characters :]
    last = last.partition("\n")[2] or last
    return f"… ({len(clean) - len(last)} characters before this)\n{last}"


def head(text: str, lines: int) -> str:
    """The first ``lines`` of ``plain`` text, each cut to a readable length, with the count of what is missing."""
    every = plain(text).strip("\n").split("\n")
    listed = [shorten(line, 400) for line in every[:lines]]
    more = len(every) - len(listed)
    return "\n".join([*listed, *([f"… ({plural(more, 'more line')})"] if more else [])])


def size(count: int) -> str:
    """Bytes for a person: ``1.5 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def seconds(value: float) -> str:
    """Seconds for a person: ``0.14 s``, ``12.3 s``."""
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def short_time(value: float) -> str:
    """Seconds of a call for a person: ``12.3 µs``."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if value * factor < 1000:
            return f"{value * factor:.3g} {unit}"
    return seconds(value)


# Records with some of their texts replaced.
T = TypeVar("T")


def replace_texts(value: T, words: Mapping[str, str]) -> T:
    """``value``, made of texts, containers and records, with each of ``words`` replaced in all texts."""
    return cast("T", _walk(value, words))


def replace_fields(value: T, change: Callable[[str, object], object]) -> T:
    """A record with what ``change`` makes of each field and its name; the very same one where nothing differs."""
    changed: dict[str, object] = {}
    for item in fields(value):  # type: ignore[arg-type]  # the caller has asked is_dataclass
        before = getattr(value, item.name)
        after = change(item.name, before)
        if after is not before and after != before:
            changed[item.name] = after
    return replace(value, **changed) if changed else value  # type: ignore[type-var]


def _walk(value: object, words: Mapping[str, str]) -> object:
    match value:
        case str() if not isinstance(value, Enum):
            for word, other in words.items():
                value = value.replace(word, other)
            return value
        case Mapping():
            return {_walk(key, words): _walk(item, words) for key, item in value.items()}
        case tuple() | list():
            items = [_walk(item, words) for item in value]
            return items if isinstance(value, list) else tuple(items)
        case frozenset():
            return frozenset(_walk(item, words) for item in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace_fields(value, lambda _, item: _walk(item, words))
    return value


# The limit of 8 MB.
MOST_BYTES = 8 << 20
"""Bytes of a document in UTF-8."""
CODE = "AD-LIMIT"

# Entries of each list and characters of each text that are kept, mildest first. The last fits whatever is nested.
_LIMIT_STEPS = ((20_000, 1_000_000), (5_000, 200_000), (1_000, 40_000), (200, 8_000), (40, 1_000), (8, 200))
_NAMED = 3


def limit_report(report: Report, render: Callable[[Report], str]) -> str:
    """``render(report)``, or that of the report with its longest parts cut so that it has at most ``MOST`` bytes."""
    text = render(report)
    for entries, characters in _LIMIT_STEPS:
        if (
            len(text) if len(text) > MOST_BYTES or 4 * len(text) <= MOST_BYTES else len(text.encode("utf-8", "replace"))
        ) <= MOST_BYTES:
            break
        text = render(_ReportCutter(entries, characters).report(report))
    return text


class _ReportCutter:
    def __init__(self, entries: int, characters: int) -> None:
        self._entries, self._characters = entries, characters
        self._cut: Counter[str] = Counter()

    def report(self, report: Report) -> Report:
        short = self._walk(report, "")
        if not self._cut:
            return report
        named = list_names([f"{place} ({count:,})" for place, count in self._cut.most_common()], _NAMED)
        reason = (
            f"this document would exceed {MOST_BYTES >> 20} MB: lists are cut at {self._entries:,} entries and texts "
            f"at {self._characters:,} characters; left out in {named}"
        )
        return replace(short, not_checked=(*short.not_checked, NotChecked(code=CODE, name="report", reason=reason)))

    def _walk(self, value: T, place: str) -> T:
        """``value`` with its long parts cut; the very same object where there are none."""
        result: object = value
        if isinstance(value, str):
            # Values of enums are texts, too, and stay what they are.
            if type(value) is not str or len(value) <= self._characters:
                result = value
            else:
                self._count(place, len(value) - self._characters)
                result = value[: self._characters] + "…"
        elif is_dataclass(value) and not isinstance(value, type):
            before = f"{place}." if place else ""
            result = replace_fields(value, lambda name, item: self._walk(item, f"{before}{name}"))
        elif isinstance(value, Mapping):
            parts = list(value.items())[: self._entries]
            self._count(place, len(value) - len(parts))
            result = {self._walk(key, place): self._walk(item, place) for key, item in parts}
        elif isinstance(value, (tuple, list)):
            self._count(place, len(value) - self._entries)
            result = type(value)(self._walk(item, place) for item in value[: self._entries])
        return result  # type: ignore[return-value]  # each branch keeps the type of what it was given

    def _count(self, place: str, more: int) -> None:
        if more > 0:
            self._cut[place] += more


# The exit status.
FAIL_ON = ("info", "warn", "error", "never")


def exit_status(report: Report, fail_on: str) -> int:
    """The exit status of ``report``; ``fail_on`` is one of ``FAIL_ON``.

    What kept the examination from its end comes first, because the rest is then partial. Findings decide between 0
    and 1 by their severity, never by the rank of the diagnosis that uses them. ``never`` silences findings and
    failures, not an examination that did not take place.
    """
    if report.internal_error is not None:
        return INTERNAL_ERROR
    if report.interrupted:
        return interruption.signal_status()
    if report.cannot_examine is not None:
        return CANNOT_EXAMINE
    if report.out_of_time:
        return OUT_OF_TIME
    if fail_on == "never":
        return OK
    # A cause that is only perhaps the one counts as a note.
    if report.verdict == "unknown" and not (report.diagnoses and fail_on == "info"):
        return UNKNOWN
    threshold = FAIL_ON.index(fail_on)
    return PROBLEM if any(finding.severity.rank >= threshold for finding in report.findings) else OK
