"""What of the wrapper was not understood: counted by the kind of fact that may be missing, each with its first example.

Every statement of the parts that hold the contract is read by a rule, or known and skipped on purpose, or noted here.
The kind of fact decides which checks say that they could not look at everything.
"""

from __future__ import annotations

import re
from dataclasses import field, replace

from aotidoctor.model.contract import Unread
from aotidoctor.model.record import record

LONGEST_EXAMPLE = 160
# The first word that occurs tells the kind; a statement that none of them fits may hold anything.
_WORDS = (
    ("output_handles", "output"),
    ("launchKernel", "launch"),
    ("loadKernel", "device-code"),
    ("assert", "assert"),
    ("constants_", "constant"),
    ("inputs", "input"),
    ("input_handles", "input"),
    ("int_array", "buffer"),
    ("empty_strided", "buffer"),
    ("alloc", "buffer"),
    ("reinterpret_tensor", "buffer"),
    ("std::move", "buffer"),
    ("grid", "launch"),
    ("_size", "symbol"),
    ("_stride", "symbol"),
    ("sizes", "symbol"),
    ("strides", "symbol"),
)
_SYMBOL = re.compile(r"(?:auto|int64_t|double) [a-z]+\d+\b")
_CALL = re.compile(r"[\w:.>-]+\(")


@record(kw_only=False, frozen=False)
class Losses:
    """Collects statements of one part (``constructor``, ``checks``, ``launches``, ``body``)."""

    part: str
    found: dict[str, Unread] = field(default_factory=dict)

    def note(self, fact: str, line: int, text: str) -> None:
        """One statement that was not understood and may hold a ``fact``."""
        known = self.found.get(fact)
        if known is None:
            example = text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + "..."
            self.found[fact] = Unread(part=self.part, fact=fact, count=1, line=line, example=example)
        else:
            self.found[fact] = replace(known, count=known.count + 1)

    def items(self) -> tuple[Unread, ...]:
        """All kinds in the order in which they were met."""
        return tuple(self.found.values())


def fact_of(text: str) -> str:
    """The kind of fact that a statement may hold, by its words."""
    head = text[:2000]
    for word, fact in _WORDS:
        if word in head:
            return fact
    if _SYMBOL.match(head) is not None:
        return "symbol"
    return "call" if _CALL.match(head) is not None else "statement"
