"""The patterns of the playbooks: their ``toml log`` blocks, parsed and checked.

Each regular expression is compiled when it is first needed, and it is needed only where the text has a word that every
match must have: most logs are told by a few of some hundred patterns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from aotidoctor.diagnosis.head import Head
from aotidoctor.logs.bounded import bounded
from aotidoctor.logs.literals import literals_of, may_match
from aotidoctor.model import extensions, playbook_files, toml
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.log import LogMatch, LogPattern

# Below this a match is a lead that the reader is shown, and no diagnosis.
LEAST_CONFIDENCE = 0.5
# Of suspicions more is said where nothing better is known.
LEAST_SUSPICION = 0.3
DEFAULT_CONFIDENCE = 0.7
STAGES = ("", "export", "compile", "link", "package", "load", "inputs", "run", "output", "serve", "host", "artifact")
_BLOCK = re.compile(r"^```toml log\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TEXTS = ("regex", "example", "source", "stage", "component", "known", "fixed")
_LISTS = ("near", "not_near")
_KEYS = frozenset((*_TEXTS, *_LISTS, "confidence", "facts", "suspect"))


def is_told(match: LogMatch) -> bool:
    """Whether it is sure enough for a diagnosis."""
    return match.confidence >= (LEAST_SUSPICION if match.pattern.is_suspect else LEAST_CONFIDENCE)


class PatternError(AotidoctorError):
    """A block of patterns breaks the form; the message says file, entry, key and what was expected."""


class _Entry(Head):
    error = PatternError


@dataclass(frozen=True)
class Pattern:
    """A pattern ready for use. ``literals``: a match has one of these words (empty: nobody knows which)."""

    record: LogPattern
    literals: tuple[str, ...]

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(bounded(self.record.regex), re.MULTILINE)

    @cached_property
    def near(self) -> tuple[re.Pattern[str], ...]:
        """What must stand around it."""
        return tuple(re.compile(bounded(text), re.MULTILINE) for text in self.record.near)

    @cached_property
    def not_near(self) -> tuple[re.Pattern[str], ...]:
        """What must not stand around it."""
        return tuple(re.compile(bounded(text), re.MULTILINE) for text in self.record.not_near)

    def may_match(self, text: str) -> bool:
        """Whether ``text`` is worth a search."""
        return may_match(self.literals, text)


def load_patterns() -> tuple[Pattern, ...]:
    """The patterns of all playbooks, by cause and in the order of each file. Raises ``PatternError``."""
    return _load(pattern_files())


def pattern_files() -> tuple[Path, ...]:
    """The files that have them: playbooks, and what plugins add to those."""
    return (*playbook_files.files(), *extensions.current().patterns)


@lru_cache(maxsize=4)
def _load(paths: tuple[Path, ...]) -> tuple[Pattern, ...]:
    return tuple(pattern for path in paths for pattern in read_patterns(path.stem, path.read_text(encoding="utf-8")))


def read_patterns(cause: str, text: str) -> tuple[Pattern, ...]:
    """The patterns in the text of one playbook. Raises ``PatternError``."""
    where = f"{cause}.md"
    found: list[Pattern] = []
    for body in _BLOCK.findall(text):
        for entry in entries_of(body, where, "log", "pattern"):
            record = _record(cause, entry, f"{where}: pattern {len(found) + 1}")
            found.append(Pattern(record=record, literals=literals_of(record.regex)))
    return tuple(found)


def check(pattern: Pattern, where: str) -> None:
    """Compile all of a pattern, which is done lazily else. Raises ``PatternError``."""
    try:
        _ = pattern.regex, pattern.near, pattern.not_near
    except re.error as error:
        raise PatternError(f"{where}: {pattern.record.regex!r}: {error}") from error


def entries_of(body: str, where: str, block: str, table_name: str) -> list[Mapping[str, object]]:
    """The tables of a ``toml`` block, which has no other ones. Raises ``PatternError``."""
    try:
        table = toml.loads(body)
    except toml.TOMLDecodeError as error:
        raise PatternError(f"{where}: toml {block}: not TOML: {error}") from error
    entries = table.get(table_name, [])
    if set(table) - {table_name} or not isinstance(entries, list):
        raise PatternError(f"{where}: toml {block}: observed keys {sorted(table)}, expected [[{table_name}]] only")
    return entries


def _record(cause: str, entry: Mapping[str, object], where: str) -> LogPattern:
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise PatternError(f"{where}: unknown key {', '.join(unknown)}")
    head = _Entry(entry, where)
    texts = {key: head.text(key, "") for key in _TEXTS}
    if not texts["regex"]:
        raise PatternError(f"{where}: regex: missing")
    if texts["stage"] not in STAGES:
        raise head.wrong("stage", texts["stage"], f"one of {', '.join(STAGES[1:])}")
    near, not_near = (head.texts(key) for key in _LISTS)
    confidence = head.share("confidence", optional=True)
    return LogPattern(
        cause=cause,
        regex=texts["regex"],
        example=texts["example"],
        source=texts["source"],
        confidence=DEFAULT_CONFIDENCE if confidence is None else confidence,
        near=near,
        not_near=not_near,
        stage=texts["stage"],
        component=texts["component"] or "torch",
        known=texts["known"],
        fixed=texts["fixed"],
        facts=_facts(head, entry),
        is_suspect=entry.get("suspect") is True,
    )


def _facts(head: Head, entry: Mapping[str, object]) -> dict[str, str]:
    value = entry.get("facts", {})
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise head.wrong("facts", value, "a table of strings")
    return value
