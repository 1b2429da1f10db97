"""Show the progress of a batch on stderr: how many, how fast, how long still, and the causes so far.

On a terminal one line that is written over, elsewhere a line every ten seconds. ``--quiet`` writes nothing. Apart from
the command, since it imports a module of fleet/ that ``--help`` does not load.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TextIO, final

from aotidoctor.cli.execute import is_live, write_live
from aotidoctor.fleet.flow import FleetTally
from aotidoctor.reports.text import one_line

_CLEAR = "\r\x1b[2K"
_LIVE_S, _LINE_S = 0.2, 10.0
_CAUSES, _WIDTH = 3, 160


@final
class BatchProgress:
    """Shows a tally from time to time."""

    def __init__(self, stream: TextIO | None, environ: Mapping[str, str], *, quiet: bool) -> None:
        self._stream = None if quiet else stream
        self._live = is_live(stream, environ)
        self._next = time.monotonic() + (0.0 if self._live else _LINE_S)

    def show(self, tally: FleetTally) -> None:
        """Show it, where it is time to; never raises for a terminal that has gone away."""
        now = time.monotonic()
        if self._stream is None or now < self._next:
            return
        self._next = now + (_LIVE_S if self._live else _LINE_S)
        line = progress_line(tally)
        write_live(self._stream, f"{_CLEAR}{line}" if self._live else f"{line}\n")

    def close(self) -> None:
        """Leave no unfinished line behind."""
        if self._live:
            write_live(self._stream, _CLEAR)


def progress_line(tally: FleetTally) -> str:
    """One line: ``1,200/10,000 · 45.1/s · 3m 15s left · 37 input-dtype, 4 isa-mismatch``."""
    parts = [f"{tally.done:,}/{tally.total:,}", f"{tally.rate:.1f}/s"]
    if tally.remaining is not None and tally.done < tally.total:
        minutes, rest = divmod(round(tally.remaining), 60)
        hours, minutes = divmod(minutes, 60)
        left = f"{hours}h {minutes:02}m" if hours else f"{minutes}m {rest:02}s" if minutes else f"{rest}s"
        parts.append(f"{left} left")
    causes = tally.causes.most_common(_CAUSES)
    named = ", ".join(f"{count:,} {cause}" for cause, count in causes)
    more = sum(tally.causes.values()) - sum(count for _, count in causes)
    parts += [named + (f", {more:,} others" if more else "")] if named else []
    return "  " + one_line(" - ".join(parts), _WIDTH)
