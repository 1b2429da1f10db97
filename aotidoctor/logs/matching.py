"""Which patterns know a failure: by its message, and by what stands around it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found
from aotidoctor.logs.keyword_filter import KeywordFilter, known_words, letters
from aotidoctor.logs.line import Line
from aotidoctor.logs.patterns import Pattern
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.log import LogMatch

MOST_MATCHES = 4


class Matcher:
    """The patterns, ready to be asked."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._keywords = KeywordFilter(known_words(patterns))

    def candidates(self, lines: Sequence[Line]) -> frozenset[str]:
        """The texts that a pattern may know."""
        reduced = {line.text: letters(line.text.encode("utf-8", "replace")) for line in lines}
        telling = self._keywords.telling(set(reduced.values()))
        return frozenset(text for text, own in reduced.items() if own in telling)

    def matches(self, found: Found, around: str) -> tuple[LogMatch, ...]:
        """The patterns that know ``found``, the surest first; of each cause the best one."""
        text = found.text
        reduced = letters(text.encode("utf-8", "replace"))
        if not self._keywords.telling({reduced}):
            return ()
        hits = [
            (pattern, hit)
            for pattern in self._patterns
            if pattern.may_match(text)
            and (hit := pattern.regex.search(text)) is not None
            and _fits(pattern, around)
            and not (pattern.record.cause == "numeric-difference" and _is_allowed(text))
        ]
        hits.sort(key=lambda item: (-item[0].record.confidence, -len(item[0].record.regex)))
        best: dict[str, LogMatch] = {}
        for pattern, hit in hits:
            best.setdefault(pattern.record.cause, _match(found, pattern, hit))
        return tuple(best.values())[:MOST_MATCHES]


def _fits(pattern: Pattern, around: str) -> bool:
    return all(near.search(around) for near in pattern.near) and not any(one.search(around) for one in pattern.not_near)


def _is_allowed(text: str) -> bool:
    """Whether it tells of a difference that is as small as it may be."""
    from aotidoctor.logs.growth import within  # noqa: PLC0415 - few logs have one

    return within(text)


def _match(found: Found, pattern: Pattern, hit: re.Match[str]) -> LogMatch:
    """With the very line that says so."""
    before = hit.string[: hit.start()].count("\n")
    number, text = found.said[min(before, len(found.said) - 1)]
    facts: dict[str, FactValue] = {**pattern.record.facts}
    facts.update({name: value for name, value in hit.groupdict().items() if value is not None})
    return found.match(pattern.record, number, text, facts)
