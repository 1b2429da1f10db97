"""What would be said of a text if nobody had ever seen it: ``python -m tests.corpus.leave_one_out [FILE...]``.

For each text of a tracker every rule is left out that no other known text needs: alternatives of the patterns, of
the places and of the code's own tables, and known issues, whose only uses among all texts are that text and its kin
(the same thread, or nearly the same words). The table of words is learnt anew without them. Texts that were made up after others are no evidence for a rule; what
torch prints for faults made on purpose (``measured.jsonl``) is. FILE: more texts, in the form of ``strangers.jsonl``.

A rule that was written from the source of a program counts as if it were written from the one text that shows it. So
the figures are lower than those of a first sight.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs import word_model
from aotidoctor.logs.patterns import LEAST_CONFIDENCE
from tests.corpus.corpus import HERE
from tests.corpus.kin import Known, load
from tests.corpus.own_rules import Rules, rules_of

if TYPE_CHECKING:
    from tests.corpus.learn import Learnt

_NO_WORDS = word_model.unpack_table(word_model.pack_table(word_model.NO_CAUSE, 1.0, {}))
FILES = tuple(
    HERE / f"{name}.jsonl"
    for name in (
        "reports",
        "further",
        "measured",
        "variants",
        "strangers",
        "unseen",
        "later",
        "marks",
        "fresh",
        "recent",
        "held",
        "latest",
        "blind",
    )
)


def outcome(text: Known, rules: Rules, learnt: Learnt | None = None) -> tuple[str, str | None, float]:
    """What is said of ``text`` without what is its own: a word for it, the cause, how sure."""
    no_words = mock.patch.object(word_model, "words", return_value=_NO_WORDS)
    with rules.without(text.kin), no_words if learnt is None else learnt.without(text.kin):
        _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    cause = diagnoses[0].cause if diagnoses else None
    sure = diagnoses[0].confidence if diagnoses else 0.0
    failed = bool(reading.unknown) or any(match.event.level == "error" for match in reading.matches)
    if text.half == "healthy":
        word = "right" if not failed and cause is None else "shared" if cause in text.accepted else "false alarm"
    elif cause is None:
        is_fine = text.half != "failing" or "unknown" in text.accepted
        word = "no failure" if not failed else "silent, as it may be" if is_fine else "silent"
    else:
        word = "right" if cause in text.accepted else f"wrong, {'high' if sure >= LEAST_CONFIDENCE else 'low'}"
    return word, cause, sure


def main(files: Sequence[str]) -> None:
    """Print the figures, and each text of which something else is said than what it turned out to be."""
    from tests.corpus.learn import Learnt  # it needs numpy

    texts = load([*FILES, *map(Path, files)])
    rules, learnt = rules_of(texts), Learnt(texts)
    counts: Counter[tuple[str, str]] = Counter()
    for text in texts:
        if text.is_asked:
            word, cause, sure = outcome(text, rules, learnt)
            counts[text.half, word] += 1
            if word not in ("right", "shared", "silent, as it may be"):
                print(f"{text.half:8} {word:12} {text.id:40} {cause} {sure:.2f} {text.accepted}")
    for half in dict.fromkeys(half for half, _ in counts):
        total = sum(count for (own, _), count in counts.items() if own == half)
        print(half, total, {word: f"{n} ({n / total:.1%})" for (own, word), n in counts.most_common() if own == half})


if __name__ == "__main__":
    main(sys.argv[1:])
