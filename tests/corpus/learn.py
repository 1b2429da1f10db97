"""Learn the table of words, ``aotidoctor/logs/alike.bin``: ``python -m tests.corpus.learn [FILE...]``.

From all texts here, those of FILE (in the form of ``strangers.jsonl``), the logs in ``healthy``, the examples of the
patterns and the playbooks. The model is linear, a ridge regression from the words of a text to what it turned out to be.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache
from math import log
from pathlib import Path
from unittest import mock

from aotidoctor.logs import word_model
from aotidoctor.logs.lines import Streams, clean_text
from aotidoctor.logs.patterns import load_patterns, pattern_files
from aotidoctor.logs.word_model import TABLE, number, pack_table, unpack_table, weigh_words
from tests.corpus.corpus import HERE
from tests.corpus.kin import Known, load

# Texts in which a word must stand; how far the fit is held back; what is left out of the table; steps of a byte.
_LEAST, _RIDGE, _SMALL, _STEPS = 3, 0.5, 0.03, 127
_SHARED, _SECTION = 0.6, 80
# Into so many parts the texts are divided to ask what would be said of each without it.
_PARTS = 8
FILES = tuple(HERE / f"{name}.jsonl" for name in ("told",))
Example = tuple[str, tuple[str, ...]]


def examples(texts: Sequence[Known]) -> list[Example]:
    """Each text with its kinds, the first of them its own."""
    return [(text.symptom, _kinds(text)) for text in texts]


def others() -> list[Example]:
    """What is of no tracker: healthy logs, the examples of the patterns, and what the playbooks say of their causes."""
    logs = [path.read_text(encoding="utf-8", errors="replace") for path in sorted((HERE / "healthy").iterdir())]
    patterns = [(one.record.example, (one.record.cause,)) for one in load_patterns()]
    told = [(text, (path.stem,)) for path in pattern_files() for text in _told(path.read_text(encoding="utf-8"))]
    return [*((text, ("healthy",)) for text in logs), *patterns, *told]


def _told(playbook: str) -> Iterator[str]:
    """The sections of a playbook but the one on what it is not, the titles of its issues, and what it looks like."""
    head, _, body = playbook.rpartition("+++")
    sections = re.sub(r"```.*?```", "", body, flags=re.DOTALL).split("\n## ")
    yield from (text for text in sections if len(text) > _SECTION and not text.startswith("When this is not"))
    yield from re.findall(r"issues/\d+ \(([^)\n]{10,})\)", body)
    yield from re.findall(r'^looked_like = "(.*)"$', head, flags=re.MULTILINE)


def _kinds(text: Known) -> tuple[str, ...]:
    if text.half in ("healthy", "other"):
        return (text.half,)
    return tuple(cause for cause in text.accepted if cause) or ("unknown",)


@cache
def _weighed(text: str) -> dict[str, float]:
    lines = enumerate(text.encode("utf-8", "replace").split(b"\n"))
    return weigh_words(line.text for line in clean_text(lines, Streams()))


def fit(learnt: Sequence[Example]) -> bytes:
    """The table that ``learnt`` makes."""
    import numpy as np

    texts = [_weighed(text) for text, _ in learnt]
    count = Counter(word for text in texts for word in text)
    known = {word: at for at, word in enumerate(sorted(word for word, n in count.items() if n >= _LEAST))}
    rare = {word: round(16 * log((len(texts) + 1) / count[word])) for word in known}
    has = np.zeros((len(texts), len(known)), np.float32)
    for row, text in enumerate(texts):
        for word, weight in text.items():
            if word in known:
                has[row, known[word]] = weight * rare[word] / 16
    has /= np.maximum(np.linalg.norm(has, axis=1, keepdims=True), 1e-6)
    names = sorted({kind for _, kinds in learnt for kind in kinds})
    means = np.zeros((len(texts), len(names)), np.float32)
    for row, (_, kinds) in enumerate(learnt):
        for at, kind in enumerate(kinds):
            means[row, names.index(kind)] = _SHARED if at else 1.0
    says = has.T @ np.linalg.solve(has @ has.T + _RIDGE * np.eye(len(texts), dtype=np.float32), means)
    scale = float(np.abs(says).max()) / _STEPS
    steps = np.rint(says / scale).astype(int)
    steps[np.abs(says) < _SMALL] = 0
    entries = {}
    for word, at in known.items():
        pairs = [(int(kind), int(steps[at, kind])) for kind in np.flatnonzero(steps[at])]
        if pairs:
            entries[number(word)] = (rare[word], pairs)
    return pack_table(names, scale, entries)


class Learnt:
    """Tables that were learnt without some of the texts: for each kin one that knows nothing of it."""

    def __init__(self, texts: Sequence[Known]) -> None:
        known = [text for text in texts if text.is_evidence]
        self._tables = [
            unpack_table(fit(examples([text for text in known if text.kin % _PARTS != part]))) for part in range(_PARTS)
        ]

    def without(self, kin: int) -> AbstractContextManager[object]:
        """The table that knows nothing of ``kin`` is the one that is asked."""
        return mock.patch.object(word_model, "words", return_value=self._tables[kin % _PARTS])


def main(files: Sequence[str]) -> None:
    """Write the table."""
    from tests.corpus.leave_one_out import FILES as ASKED

    texts = load([*ASKED, *FILES, *map(Path, files)])
    TABLE.write_bytes(fit([*examples(texts), *others()]))


if __name__ == "__main__":
    main(sys.argv[1:])
