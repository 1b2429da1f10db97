"""What the tool that a child ran under wrote: the beginning, since the first finding is the one that counts."""

from __future__ import annotations

from pathlib import Path

FILE = "tool.log"
MAX_BYTES = 128 * 1024


def read_tool_output(run_dir: Path) -> str:
    """The first part of the tool's file; empty when there is none."""
    try:
        with (run_dir / FILE).open("rb") as stream:
            return stream.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
