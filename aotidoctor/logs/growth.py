"""Measures of one thing that grow from line to line: memory in use, or how many tensors, objects or handles are alive.

Nobody needs a word for a leak who pastes such a column. Peaks are none: they grow with every larger input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

_MEASURE = re.compile(
    r"(?<![\w.])(?P<name>(?:live |open |num_?|n_)?(?:tensors?|objects?|handles?|fds?|rss|vms|memory_allocated"
    r"|memory_reserved|mem(?:ory)?(?: usage| used)?|allocated))"
    r"['\"]?\s{0,4}[:=]\s{0,4}(?P<value>\d{1,18}(?:\.\d{1,6})?)",
    re.IGNORECASE,
)
_PEAK = re.compile(r"\b(?:max|peak|total|limit|device|available|free|host)\w{0,20}[ _.]?$", re.IGNORECASE)
# So many values in a row, each larger than the one before, and the last by so much larger than the first.
_LEAST, _GROWTH, _BEFORE = 3, 1.25, 24


def growing(texts: Iterable[str]) -> str:
    """The name of a measure that grew in every line that has it; empty where there is none."""
    columns: dict[str, list[float]] = {}
    for text in texts:
        for found in _MEASURE.finditer(text):
            if _PEAK.search(text[max(found.start() - _BEFORE, 0) : found.start()]) is None:
                columns.setdefault(found["name"].lower(), []).append(float(found["value"]))
    return next((name for name, values in columns.items() if _grows(values)), "")


def _grows(values: list[float]) -> bool:
    rises = all(before < after for before, after in pairwise(values))
    return len(values) >= _LEAST and rises and values[-1] >= _GROWTH * values[0] > 0
