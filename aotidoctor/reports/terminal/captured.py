"""What rich makes of a page, as text: for a stream that is there, or without colour at a fixed width."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TextIO

from rich.console import Console

from aotidoctor.reports.terminal.stream import looks_of

Show = Callable[[Console], None]
# Columns where there is no terminal: no line of code is that long, and no paragraph is one line.
_UNFOLDED = 200
# What COLUMNS may say: in fewer nothing can be read, and rich fills a line to its end.
_NARROWEST, _WIDEST = 20, 1000


def for_stream(show: Show, *, stream: TextIO, environ: Mapping[str, str], unfolded: int = _UNFOLDED) -> str:
    """What ``show`` prints, with the colour, width and character set of ``stream``.

    Where it is no terminal, lines have ``unfolded`` columns: nothing folds at its edge, and what a line holds is found
    by searching for it.
    """
    looks = looks_of(stream)
    asked = environ.get("COLUMNS", "")
    # Some terminals and programs that start others say 0 for "not known".
    environ = {name: value for name, value in environ.items() if name != "COLUMNS"}
    width = min(max(int(asked), _NARROWEST), _WIDEST) if asked.isdecimal() and len(asked) < 9 and int(asked) else None
    console = Console(
        file=looks,
        width=width or (None if looks.isatty() else unfolded),
        _environ=environ,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        # What it makes of a page for a notebook is not text.
        force_jupyter=False,
    )
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return _captured(show, console).encode(encoding, "replace").decode(encoding)


def plain(show: Show, *, width: int) -> str:
    """What ``show`` prints, without colour."""
    console = Console(
        file=io.StringIO(), _environ={}, width=width, color_system=None, highlight=False, markup=False, emoji=False
    )
    return _captured(show, console)


def _captured(show: Show, console: Console) -> str:
    """Without the blanks with which rich fills its columns."""
    with console.capture() as captured:
        show(console)
    return "\n".join(line.rstrip(" ") for line in captured.get().split("\n"))
