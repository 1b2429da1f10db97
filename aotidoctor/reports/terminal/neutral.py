"""What a stranger wrote moves no cursor: the one place through which all text goes to a terminal.

Tables, headlines and rows hold names out of packages, logs and file systems. Whatever is printed to a console with this
hook loses its control characters after layout; the colours are rich's own and stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from aotidoctor.reports.text import neutral


@dataclass(frozen=True, slots=True)
class _Plain:
    inner: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What ``inner`` is made of, neutral."""
        for part in console.render(self.inner, options):
            yield part if part.control else Segment(neutral(part.text), part.style)


class _Neutral(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Each of them, neutral."""
        return [_Plain(one) for one in renderables]


NEUTRAL = _Neutral()
