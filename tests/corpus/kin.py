"""All known texts, and which of them are kin: of the same thread, or copies of the same pages of a log."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_HALVES = ("failing", "healthy", "other", "unknown")
# Kin share so many of their runs of words, and so large a part of them.
_LEAST, _ALIKE, _RUN = 30, 0.6, 4


@dataclass(frozen=True)
class Known:
    """A text, its labels and its kin (a number). ``is_evidence``: it was not made up after another one."""

    id: str
    symptom: str
    half: str
    accepted: tuple[str | None, ...]
    kin: int
    is_evidence: bool
    is_asked: bool


def load(files: Sequence[Path]) -> list[Known]:
    """All texts with their kin."""
    rows = [(path.stem, json.loads(line)) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [(name, row) for name, row in rows if row["symptom"]]
    kins = _kins([row for _, row in rows])
    return [_known(name, row, kin) for (name, row), kin in zip(rows, kins, strict=True)]


def _known(name: str, row: Mapping[str, object], kin: int) -> Known:
    half, cause, url = str(row.get("half", "")), row.get("cause"), row.get("url")
    half = half if half in _HALVES else "failing"
    is_sure = row.get("confidence", "high") in ("high", "medium")
    shared = row.get("shared", ())
    accepted = (cause, *(shared if isinstance(shared, list) else ()))
    is_asked = bool(url) and is_sure and (bool(cause) or row.get("half") in _HALVES)
    is_evidence = bool(url) or name == "measured"
    return Known(str(row["id"]), str(row["symptom"]), half, accepted, kin, is_evidence, is_asked)


def _kins(rows: Sequence[Mapping[str, object]]) -> list[int]:
    """A number for each thread, and for texts that share most of their words."""
    kin = list(range(len(rows)))
    threads: dict[str, int] = {}
    words = [_shingles(str(row["symptom"])) for row in rows]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        url = re.sub(r"[#?].*", "", str(row.get("url") or ""))
        near = [threads.setdefault(url, at)] if url else []
        shared = Counter(one for word in words[at] for one in holders[word])
        # The same message in two threads is no copy; the same pages of a log are.
        near += [one for one, n in shared.items() if n >= max(_LEAST, _ALIKE * max(len(words[at]), len(words[one])))]
        for one in near:
            old, new = kin[at], kin[one]
            kin = [new if number == old else number for number in kin]
        for word in words[at]:
            holders[word].append(at)
    return kin


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[A-Za-z_]{2,}", text)
    return {tuple(words[at : at + _RUN]) for at in range(max(len(words) - _RUN + 1, 1))}
