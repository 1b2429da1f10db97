"""Show a page of Markdown on a terminal, for `explain`.

Apart from everything else because rich.markdown takes longer to import than all of rich that a report needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.console import Console
from rich.markdown import Markdown

from aotidoctor.reports.terminal.terminal_layout import capture_for_stream

_WIDEST, _UNFOLDED = 100, 80


def markdown_page_text(markdown: str, *, stream: TextIO, environ: Mapping[str, str]) -> str:
    """``markdown`` as ``stream`` can show it, in lines that are not too long to read."""

    def show(console: Console) -> None:
        console.print(Markdown(markdown, code_theme="ansi_dark"), width=min(console.width, _WIDEST))

    return capture_for_stream(show, stream=stream, environ=environ, unfolded=_UNFOLDED)
