"""Symbolic sizes as the wrapper writes them, parsed to a small frozen tree. (Completed with the contract stage.)"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expr:
    """A symbolic size; ``text`` is its normalised form."""

    text: str
