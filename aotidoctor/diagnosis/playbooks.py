"""Playbooks as records: all of ``playbooks/*.md``, heads parsed.

Parsing TOML is the costly part of starting up, so ``load_playbooks`` can leave out the files that name none of the
codes in hand: what such a file says cannot match. Everything about a file that is not as it must be raises
``PlaybookError`` with file, key, observed and expected; ``check_prose`` adds what only the tests need to know.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from aotidoctor.diagnosis.head import LOG_STAGES, STAGES, Head, PlaybookError, one_of, parse_toml, split
from aotidoctor.model import playbook_files
from aotidoctor.model.diagnosis import Playbook

HEADINGS = ("What happened", "Why", "Confirm it", "Fix", "When this is not it", "References")
MATCHES, DOES_NOT = "matches", "does-not-match"
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^```toml (matches|does-not-match)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a log says when this is the cause: read by aotidoctor.logs, and by it alone.
_LOG = re.compile(r"^```toml (?:log|known)\n.*?^```$", re.MULTILINE | re.DOTALL)


def load_playbooks(mentioning: Collection[str] | None = None) -> tuple[Playbook, ...]:
    """All playbooks by weight; with ``mentioning`` only those whose head names one of these evidence codes.

    Raises ``PlaybookError`` for a file that breaks the form.
    """
    wanted = None if mentioning is None else frozenset(mentioning)
    return _load(playbook_files.files(), wanted)


@lru_cache(maxsize=8)
def _load(paths: tuple[Path, ...], mentioning: frozenset[str] | None) -> tuple[Playbook, ...]:
    found = [playbook for path in paths if (playbook := _read(path, mentioning)) is not None]
    return tuple(sorted(found, key=lambda playbook: (playbook.weight, playbook.cause)))


def _read(path: Path, mentioning: frozenset[str] | None) -> Playbook | None:
    head, _ = split(_text(path), str(path))
    if mentioning is not None and not any(code in head or _family(code) in head for code in mentioning):
        return None
    return parse_playbook(head, path)


def _family(code: str) -> str:
    """``TRITON-*`` of ``TRITON-R27``."""
    return f"{code.partition('-')[0]}-*"


def find_playbook(cause: str) -> Playbook | None:
    """The playbook of one cause, None when there is none. Reads that one file only."""
    path = playbook_files.find(cause)
    return None if path is None else read_playbook(path)


def read_playbook(path: Path) -> Playbook:
    """One playbook file. Raises ``PlaybookError``."""
    return parse_playbook(split(_text(path), str(path))[0], path)


def parse_playbook(text: str, path: Path) -> Playbook:
    """The head ``text`` of the file ``path``, checked. Raises ``PlaybookError``."""
    head = Head(parse_toml(text, path.name), path.name)
    stage = one_of(head, "stage", STAGES)
    playbook = Playbook(
        cause=one_of(head, "cause", (path.stem,)),
        stage=stage,
        title=head.text("title"),
        any_of=head.conditions("any_of"),
        all_of=head.conditions("all_of"),
        none_of=head.conditions("none_of"),
        explains=head.texts("explains"),
        severity=head.severity("severity"),
        weight=head.number("weight", STAGES[stage]),
        confidence=head.share("confidence") or 0.0,
        looked_like=head.text("looked_like"),
        remedy=head.text("remedy"),
        command=head.text("command", ""),
        treatment=head.text("treatment", "") or None,
        would_confirm=head.text("would_confirm"),
        versions=head.text("versions", ""),
        path=str(path),
    )
    head.done()
    if not playbook.any_of and not playbook.all_of and stage not in LOG_STAGES:
        raise PlaybookError(f"{path.name}: any_of: missing, and so is all_of: it would match everything")
    return playbook


def sections_of(playbook: Playbook) -> dict[str, str]:
    """Heading to text, in order; the example blocks are left out."""
    _, prose = split(_text(Path(playbook.path)), playbook.path)
    parts = _HEADING.split(_LOG.sub("", _EXAMPLE.sub("", prose)))
    return {title.strip(): text.strip() for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def examples_of(playbook: Playbook) -> Mapping[str, tuple[Head, ...]]:
    """The evidence tables of both example blocks, under ``matches`` and ``does-not-match``."""
    _, prose = split(_text(Path(playbook.path)), playbook.path)
    found: dict[str, tuple[Head, ...]] = {}
    for name, body in _EXAMPLE.findall(prose):
        if name in found:
            raise PlaybookError(f"{playbook.path}: two blocks of {name}, expected one")
        found[name] = Head(parse_toml(body, f"{playbook.path} ({name})"), playbook.path).tables("evidence")
    return found


def check_prose(playbook: Playbook) -> None:
    """Raise ``PlaybookError`` unless headings and example blocks are as they must be."""
    sections = sections_of(playbook)
    if tuple(sections) != HEADINGS:
        raise PlaybookError(f"{playbook.path}: observed headings {tuple(sections)}, expected {HEADINGS}")
    empty = [title for title, text in sections.items() if not text]
    if empty:
        raise PlaybookError(f"{playbook.path}: no text under {', '.join(empty)}")
    examples = examples_of(playbook)
    if not examples.get(MATCHES) or DOES_NOT not in examples:
        raise PlaybookError(f"{playbook.path}: observed blocks {sorted(examples)}, expected {MATCHES} and {DOES_NOT}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlaybookError(f"{path}: cannot be read: {error}") from error
