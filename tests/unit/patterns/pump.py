"""Texts that make a regular expression work: what each of its repeats takes, many times, and then no match.

Read off the expression's own parse tree, so that nobody has to think of one: for each repeat without a small bound, its
body is pumped after what stands before it, alone (a search starts again at each place), and together with what stands
before it (a search starts again at each prefix).
"""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Iterator
from itertools import product

try:
    from re import _constants as sre
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as sre
    import sre_parse as parser

_SMALL = 30
_LONGEST = 0.5
_CANDIDATES = "a1 /.:_-,\n\t'\"()[]{}<>=*;#"
_CATEGORIES = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " \t",
    sre.CATEGORY_WORD: "a1_",
    sre.CATEGORY_NOT_DIGIT: "a ",
    sre.CATEGORY_NOT_SPACE: "a/1",
    sre.CATEGORY_NOT_WORD: " /",
}
_ENDS = ("\x01", "\n\x01")


def texts(pattern: re.Pattern) -> Iterator[tuple[str, str, str]]:
    """Prefix, pumped text and end of each text to try."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags & ~(re.UNICODE if isinstance(pattern.pattern, bytes) else 0)
    seen = set()
    for before, body, rest in _repeats(parser.parse(source, flags)):
        following = [after for after in _samples(rest[:3], 2) if after]
        for at, one in enumerate(filter(None, _samples(body, 4))):
            for pumped, end in product([one, *(one + after for after in following)], _ENDS if at == 0 else _ENDS[:1]):
                for found in ((before, pumped, end), ("", pumped, end), ("", before + pumped, end)):
                    if found not in seen:
                        seen.add(found)
                        yield found


def seconds(
    pattern: re.Pattern, methods: frozenset[str], pumped: tuple[str, str, str], length: int, tries: int = 1
) -> float:
    """CPU time of ``pattern`` over about ``length`` characters, the least of some tries."""
    before, unit, end = pumped
    text = before + unit * max(length // len(unit), 1) + end
    subject = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    return min(_once(pattern, methods, subject) for _ in range(tries))


class _TooLongError(Exception):
    pass


def _stop(_number, _frame):
    raise _TooLongError


def _once(pattern: re.Pattern, methods: frozenset[str], subject: str | bytes) -> float:
    """CPU seconds; infinity where it takes more than ``_LONGEST``: nobody would see the end of an exponential one."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST)
    start = time.thread_time()
    try:
        _use(pattern, methods, subject)
        return time.thread_time() - start
    except _TooLongError:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _use(pattern: re.Pattern, methods: frozenset[str], subject: str | bytes) -> None:
    for method in methods:
        if method in ("search", "match", "fullmatch"):
            getattr(pattern, method)(subject)
        else:
            for _ in pattern.finditer(subject):
                pass


def _repeats(sequence, before: str = "") -> Iterator[tuple[str, object, list]]:
    """What stands before each repeat, its body, and what follows."""
    items = list(sequence)
    for at, (kind, value) in enumerate(items):
        so_far = before + max(_samples(items[:at]), key=len, default="")
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            if value[1] >= _SMALL:
                yield so_far, value[2], items[at + 1 :]
            yield from _repeats(value[2], so_far)
        elif kind is sre.SUBPATTERN:
            yield from _repeats(value[3], so_far)
        elif kind is sre.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, so_far)
        elif kind in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repeats(value[1], so_far)


def _samples(sequence, most: int = 6) -> list[str]:
    """A few texts that match ``sequence``."""
    found = [""]
    for kind, value in sequence:
        parts = _parts(kind, value) or [""]
        found = [start + parts[0] for start in found] + [found[0] + part for part in parts[1:]]
        found = list(dict.fromkeys(found))[:most]
    return found


def _parts(kind, value) -> list[str]:
    if kind is sre.LITERAL:
        return [chr(value)]
    if kind is sre.NOT_LITERAL:
        return [char for char in _CANDIDATES if ord(char) != value][:3]
    if kind is sre.ANY:
        return ["a", " ", "1"]
    if kind is sre.IN:
        return [char for char in _characters(value) if _is_in(ord(char), value)][:8]
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        body = _samples(value[2], 3)
        return ["", *body] if value[0] == 0 else [one * value[0] for one in body]
    if kind is sre.SUBPATTERN:
        return _samples(value[3])
    if kind is sre.BRANCH:
        return [text for branch in value[1] for text in _samples(branch, 2)][:8]
    return [""]


def _characters(members) -> list[str]:
    named = [chr(code) for kind, value in members if kind in (sre.LITERAL, sre.RANGE) for code in _codes(kind, value)]
    return [*named, *_CANDIDATES, "\u4e2d"]


def _codes(kind, value) -> tuple[int, ...]:
    return (value,) if kind is sre.LITERAL else tuple(value)


def _is_in(code: int, members) -> bool:
    negated = any(kind is sre.NEGATE for kind, _ in members)
    return negated != any(_is_member(code, kind, value) for kind, value in members)


def _is_member(code: int, kind, value) -> bool:
    if kind is sre.LITERAL:
        return code == value
    if kind is sre.RANGE:
        return value[0] <= code <= value[1]
    if kind is sre.CATEGORY:
        name = str(value).rpartition("_")[2]
        char = chr(code)
        is_it = {"DIGIT": char.isdigit(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}[name]
        return is_it != ("NOT" in str(value))
    return False
