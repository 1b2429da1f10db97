"""One line of a log without what other programs put around it: colours, time, rank, container, log level."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """``text`` is what the program said, from line ``number``.

    ``origin`` is the process it came from (rank, container, pid; empty: the log's own), ``stream`` the thread of it:
    lines of one stream follow each other. ``level`` is ``error``, ``warning``, ``info``, ``doubtful`` (of a logger that
    calls errors what are none) or empty; ``stamped`` tells that a logger began a new record here. ``raw`` is the line
    as it stands in the file.
    """

    number: int
    text: str
    origin: str = ""
    stream: str = ""
    level: str = ""
    stamped: bool = False
    raw: bytes = b""
