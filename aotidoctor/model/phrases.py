"""Phrases that every room writes alike."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first ``most`` names joined by commas, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 run``, ``2 runs``, ``2 leaves``."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"
