"""A page of Markdown for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.markdown import Markdown

from aotidoctor.reports.terminal.stream import looks_of

_WIDEST = 100


def text(markdown: str, *, stream: TextIO, environ: Mapping[str, str]) -> str:
    """``markdown`` as ``stream`` can show it, in lines that are not too long to read."""
    console = Console(file=looks_of(stream), _environ=environ, highlight=False, emoji=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(Markdown(markdown, code_theme="ansi_dark"), width=min(console.width, _WIDEST))
    lines = captured.get().split("\n")
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return "\n".join(line.rstrip(" ") for line in lines).encode(encoding, "replace").decode(encoding)
