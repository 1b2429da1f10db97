"""What one playbook cannot say in one way: titles and remedies for the kinds of a cause that a log tells apart.

The table is ``splits.toml``, read when a log has a diagnosis. A finding keeps the name of its kind and what it found
(the library, the operator); the sentences are filled in when the diagnosis is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from aotidoctor.logs.bounded import bounded
from aotidoctor.logs.demangled import demangled
from aotidoctor.model import toml
from aotidoctor.model.evidence import FactValue

# dyld shows the underscore that C names have on macOS.
_C_SYMBOL = re.compile(r"(?:undefined symbol: |[Ss]ymbol not found: _)([A-Za-z_]\w{1,200})")
_SYMBOL = re.compile(r"(?<![\w?])(?:_{1,2}Z\w{3,400}|\?{1,2}[A-Za-z_]\w{0,200}@[\w@]{1,200})")


@dataclass(frozen=True)
class Split:
    """A kind of a cause. ``title``, ``remedy`` and ``command`` are as in a playbook; empty ones are the playbook's."""

    cause: str
    kind: str
    said: str
    title: str = ""
    remedy: str = ""
    command: str = ""

    @cached_property
    def words(self) -> re.Pattern[str]:
        """What such a message has; its named groups are facts."""
        return re.compile(bounded(self.said), re.MULTILINE)


def kind_of(cause: str, text: str) -> dict[str, FactValue]:
    """The kind of ``cause`` that ``text`` speaks of, as facts; empty where there are no kinds or none fits."""
    facts: dict[str, FactValue] = {}
    for one in splits():
        hit = one.words.search(text) if one.cause == cause else None
        if hit is not None:
            facts = {"split": one.kind, **{name: value for name, value in hit.groupdict().items() if value}}
            break
    if cause in ("abi-mismatch", "undefined-symbol-link") and (symbol := _symbol_of(text)) is not None:
        facts["demangled"] = symbol
    return facts


def _symbol_of(text: str) -> str | None:
    """The symbol of C++ that ``text`` names, as it is written in the source; else the one of C, as shims are."""
    symbol = _SYMBOL.search(text)
    if symbol is not None:
        return demangled(symbol[0])
    plain = _C_SYMBOL.search(text)
    return plain[1] if plain is not None else None


def split_of(cause: str, facts: Mapping[str, FactValue]) -> Split | None:
    """The kind that ``kind_of`` found; None without one."""
    kind = facts.get("split")
    return next((one for one in splits() if (one.cause, one.kind) == (cause, kind)), None)


@lru_cache(maxsize=1)
def splits() -> tuple[Split, ...]:
    """The table."""
    table = toml.loads(Path(__file__).with_name("splits.toml").read_text(encoding="utf-8"))
    return tuple(Split(**entry) for entry in table["split"])
