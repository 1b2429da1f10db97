"""Numbers that complain without a word: memory that grows from line to line, times and differences that are too large.

Nobody needs a word for a leak who pastes such a column. Peaks are none: they grow with every larger input. Nor does
who writes the time of the compiled program beside that of eager, or a difference beside what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

_MEASURE = re.compile(
    r"(?<![\w.])(?P<name>(?:live |open |num_?|n_)?(?:tensors?|objects?|handles?|fds?|rss|vms|memory_allocated"
    r"|memory_reserved|mem(?:ory)?(?: usage| used)?|allocated))"
    r"(?:['\"]?\s{0,4}[:=]\s{0,4}|\s(?=\d{1,18}(?:\.\d{1,6})?\s?[KMG]i?B\b))(?P<value>\d{1,18}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)
# A program that is started again begins anew.
_STARTED = re.compile(r"^\s{0,8}\S{0,60}[$#] \S")
_PEAK = re.compile(r"\b(?:max|peak|total|limit|device|available|free|host)\w{0,20}[ _.]?$", re.IGNORECASE)
# So many values in a row, each larger than the one before, and the last by so much larger than the first.
_LEAST, _GROWTH, _BEFORE, _KEPT = 3, 1.25, 24, 0.99


_FREE = re.compile(
    r"\bfree (?:gpu |cuda |device )?(?:v?ram|mem(?:ory)?)\W{1,4}(?P<value>\d{1,12}(?:\.\d{1,6})?)", re.IGNORECASE
)
# So many values of what is free that never rise, and by how much they fall.
_MANY, _FALLS = 4, 0.95
_WAITS, _WAIT, _DIGITS = 5, re.compile(r"\bwait(?:ing)? for\b", re.IGNORECASE), re.compile(r"\d+")
_NUMBER = r"(?P<{}>\d{{1,9}}(?:\.\d{{1,12}})?(?:e[-+]?\d{{1,3}})?)"
# Whose time it is, behind it the time; a rate is the better the larger it is.
_TIME = re.compile(
    r"\b(?P<who>(?:compiled|torch[.]compile|inductor)(?: model| version)?|aoti\w{0,12}|eager(?: mode| model)?)\W{1,6}"
    + _NUMBER.format("value")
    + r"(?P<unit> ?(?:it|tok\w{0,4}|tokens?|samples|images|frames|req)/s"
    r"| ?(?:[mun]?s|sec(?:onds?)?)\b|(?! ?[A-Za-z\d.]))",
    re.IGNORECASE,
)
_SPEEDUP = re.compile(r"\bspeed-?up\W{1,4}(?P<value>0\.\d{1,6}) ?x?\b", re.IGNORECASE)
_SLOWER = 1.25
# A difference, and how much of it is allowed.
_BEYOND = re.compile(
    r"\b(?:diff(?:erence)?|error|deviation)s?\b[^\d\n]{1,30}"
    + _NUMBER.format("value")
    + r"[^\n]{1,60}?\b(?:tol(?:erance)?|[ar]tol|up to|threshold|allowed|limit|expected <)\b[^\d\n]{0,12}"
    + _NUMBER.format("most"),
    re.IGNORECASE,
)


def slower(text: str) -> bool:
    """Whether a line has the time of a compiled program beside that of eager, and it is the longer one."""
    if (said := _SPEEDUP.search(text)) is not None:
        return float(said["value"]) * _SLOWER < 1
    times = {hit["who"].lower().startswith("eager"): hit for hit in _TIME.finditer(text)}
    rates = {"/" in hit["unit"] for hit in times.values()}
    if len(times) < 2 or len(rates) > 1:
        return False
    eager, compiled = float(times[True]["value"]), float(times[False]["value"])
    return (eager > _SLOWER * compiled) if True in rates else (compiled > _SLOWER * eager > 0)


def beyond(text: str) -> bool:
    """Whether a line has a difference that is larger than what it says is allowed."""
    return not all(_allowed(text))


def within(text: str) -> bool:
    """Whether each difference in it is as small as what it says is allowed; False where there is none."""
    allowed = _allowed(text)
    return bool(allowed) and all(allowed)


def _allowed(text: str) -> list[bool]:
    return [float(hit["value"]) <= float(hit["most"]) for hit in _BEYOND.finditer(text)]


def shrinking(texts: Iterable[str]) -> bool:
    """Whether what is free gets less and never more."""
    values = [float(hit["value"]) for text in texts if (hit := _FREE.search(text)) is not None]
    falls = all(before >= after for before, after in pairwise(values))
    return len(values) >= _MANY and falls and values[-1] <= _FALLS * values[0]


def waiting(texts: Sequence[str]) -> bool:
    """Whether the last lines say again and again that something is waited for, and nothing comes."""
    last = {_DIGITS.sub("", text) for text in texts[-_WAITS:]}
    return len(texts) >= _WAITS and len(last) == 1 and _WAIT.search(last.pop()) is not None


def growing(texts: Iterable[str]) -> str:
    """The name of a measure that grew in every line that has it; empty where there is none."""
    columns: dict[tuple[str, int], list[float]] = {}
    program = 0
    for text in texts:
        program += _STARTED.match(text) is not None
        for found in _MEASURE.finditer(text):
            if _PEAK.search(text[max(found.start() - _BEFORE, 0) : found.start()]) is None:
                columns.setdefault((found["name"].lower(), program), []).append(float(found["value"]))
    return next((name for (name, _), values in columns.items() if _grows(values)), "")


def _grows(values: list[float]) -> bool:
    # After the last one somebody may have asked for a clean-up, which brought nothing.
    if len(values) > _LEAST and _KEPT * values[-2] <= values[-1] <= values[-2]:
        values = values[:-1]
    rises = all(before < after for before, after in pairwise(values))
    return len(values) >= _LEAST and rises and values[-1] >= _GROWTH * values[0] > 0
