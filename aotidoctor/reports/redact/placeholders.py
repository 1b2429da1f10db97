"""Which placeholder stands for what: one table for everything that one redactor sees, or several in a row."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aotidoctor.reports.redact.names import Name

# Equal in any case of letters.
_FOLDED = ("user", "host", "word", "project", "email", "ip", "mac")
_FORM = re.compile(r"<([a-z]+)(?:-(\d+))?>")


class Placeholders:
    """Gives ``<user>``, ``<secret-1>``...: the same for the same text, another for another."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._texts: dict[str, str] = {}
        self._last: dict[str, int] = {}
        for placeholder, text in (known or {}).items():
            self._keep(placeholder, text)

    def give(self, kind: str, text: str, *, own: bool = False) -> str:
        """The placeholder of ``text``, which is of ``kind``; ``own`` for what is the owner's, not met in a text."""
        key = _key(kind, text)
        known = self._given.get(key)
        if known is not None:
            return known
        same = self._same_machine(text) if kind == "host" else None
        if same is not None:
            self._given[key] = same
            return same
        placeholder = f"<{kind}>"
        if not own or placeholder in self._texts:
            self._last[kind] = self._last.get(kind, 0) + 1
            placeholder = f"<{kind}-{self._last[kind]}>"
        self._given[key], self._texts[placeholder] = placeholder, text
        return placeholder

    def known(self, kind: str, text: str) -> str | None:
        """The placeholder that ``text`` has, None where it has none."""
        return self._given.get(_key(kind, text))

    def names(self) -> tuple[Name, ...]:
        """Everything that has a placeholder."""
        return tuple(Name(placeholder.strip("<>").partition("-")[0], text) for placeholder, text in self._texts.items())

    def table(self) -> dict[str, str]:
        """Placeholder to text, in the order given."""
        return dict(self._texts)

    def _same_machine(self, host: str) -> str | None:
        """``bluebird`` is ``bluebird.example.org``: one machine, one placeholder."""
        name = host.casefold()
        short = name.partition(".")[0]
        for (kind, known), placeholder in self._given.items():
            if kind == "host" and short == known.partition(".")[0] and short in (name, known):
                return placeholder
        return None

    def _keep(self, placeholder: str, text: str) -> None:
        found = _FORM.fullmatch(placeholder)
        if found is None:
            return
        kind, number = found[1], int(found[2] or 0)
        self._given[_key(kind, text)] = placeholder
        self._texts[placeholder] = text
        self._last[kind] = max(self._last.get(kind, 0), number)


def _key(kind: str, text: str) -> tuple[str, str]:
    return kind, text.casefold() if kind in _FOLDED else text
