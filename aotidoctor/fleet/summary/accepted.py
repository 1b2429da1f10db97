"""Read the list of accepted failures: a TOML file to review, whose entries have a reason and an end.

    [[accept]]
    signature = "aotidoctor2:0123456789abcdef"   # or family, or cause
    items = "nightly/*.pt2"                       # optional: only these names
    reason = "waits for the new tokenizer"
    until = 2026-12-31                            # the last day on which it holds

Apart from the rest of the summary, which needs pandas: the list is read before, so that its errors come first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase

from aotidoctor.files import open_regular
from aotidoctor.model import load_toml
from aotidoctor.model.errors import UsageError
from aotidoctor.model.fleet_summary import Acceptance

_LARGEST, _MOST = 1 << 20, 10_000
_ABOUT = ("signature", "family", "cause")
_KEYS = frozenset((*_ABOUT, "items", "reason", "until"))


def read_accepted(path: str, today: date) -> tuple[Acceptance, ...]:
    """The entries of the file. Raises UsageError, which names the entry and what is wrong with it."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise UsageError(f"{path}: larger than {_LARGEST:,} bytes")
        document = load_toml(data.decode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error}; expected a TOML file with [[accept]] entries") from error
    entries = document.get("accept")
    if not isinstance(entries, list) or document.keys() - {"accept"}:
        raise UsageError(f"{path}: observed {sorted(document)[:5]}, expected [[accept]] entries only")
    if len(entries) > _MOST:
        raise UsageError(f"{path}: more than {_MOST:,} entries")
    return tuple(_entry(entry, f"{path}: entry {number}", today) for number, entry in enumerate(entries, 1))


def _entry(entry: object, where: str, today: date) -> Acceptance:
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: observed no table")
    if unknown := sorted(entry.keys() - _KEYS):
        raise UsageError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(_KEYS))}")
    if sum(name in entry for name in _ABOUT) != 1:
        raise UsageError(f"{where}: expected exactly one of {', '.join(_ABOUT)}")
    until = entry.get("until")
    if type(until) is not date:
        raise UsageError(f"{where}: until: expected a date such as 2026-12-31")
    return Acceptance(
        reason=_text(entry, "reason", where) or "",
        until=until.isoformat(),
        signature=_text(entry, "signature", where, needed=False),
        family=_text(entry, "family", where, needed=False),
        cause=_text(entry, "cause", where, needed=False),
        items=_text(entry, "items", where, needed=False),
        expired=until < today,
    )


def _text(entry: Mapping[str, object], name: str, where: str, *, needed: bool = True) -> str | None:
    value = entry.get(name)
    if value is None and not needed:
        return None
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where}: {name}: expected a text")
    return value


def covering_entry(
    entries: Sequence[Acceptance], *, signature: str | None, family: str | None, cause: str | None, names: Iterable[str]
) -> Acceptance | None:
    """The entry that covers all of ``names``: one that holds before one that has expired; None where none does."""
    about = [
        entry
        for entry in entries
        if (entry.signature is not None and entry.signature == signature)
        or (entry.family is not None and entry.family == family)
        or (entry.cause is not None and entry.cause == cause)
    ]
    for entry in sorted(about, key=lambda one: (one.expired, one.items is not None)):
        if entry.items is None or all(fnmatchcase(name, entry.items) for name in names):
            return entry
    return None


def unused_entries(entries: Sequence[Acceptance], used: Collection[Acceptance]) -> tuple[Acceptance, ...]:
    """The entries that cover nothing: they can go."""
    return tuple(entry for entry in entries if entry not in used)
