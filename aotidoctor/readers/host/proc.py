"""The small files in which the kernel states facts."""

from __future__ import annotations

from pathlib import Path


def text_of_file(path: Path) -> str:
    """The whole file; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
