"""What a log says: its events in order, and what they are to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.evidence import FactValue
from aotidoctor.model.record import record


@record
class LogPattern:
    """What a log says when a cause is at work: one entry of the ``toml log`` block of a playbook.

    ``regex`` is searched in the text of an event. ``near`` and ``not_near`` are searched in the lines around it: all
    of the first must be there, none of the second. Named groups are facts (``subject`` is the subject). ``stage`` is
    where such a line comes from (``export``, ``compile``, ``link``, ``package``, ``load``, ``run``, ``output``,
    ``serve``; empty: told by the event). ``source`` is the file that prints the message, ``known`` and ``fixed`` are
    releases of what ``component`` names. ``confidence`` in 0..1. ``example`` is a real message of this kind; without
    one the place of the failure tells the cause, and ``source`` is the reason.
    ``is_suspect``: where nothing better is known it is a diagnosis, too, however low its confidence.
    """

    cause: str
    regex: str
    example: str
    source: str
    confidence: float
    near: tuple[str, ...] = ()
    not_near: tuple[str, ...] = ()
    stage: str = ""
    component: str = "torch"
    known: str = ""
    fixed: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    is_suspect: bool = False


@record
class LogEvent:
    """One failure as a log tells it, from line ``first`` to line ``last`` (from 1).

    ``form`` names the shape (``python``, ``terminate``, ``c10``, ``glog``, ``compiler``, ``linker``, ``loader``,
    ``gdb``, ``sanitizer``, ``triton``, ``kernel``, ``assert``, ``signal``, ``line``...). ``text`` is the message,
    without prefixes and colours; ``frames`` are the symbols or ``file:line`` of its stack, innermost first. ``origin``
    is the rank, thread, container or process it came from. ``level`` is ``error``, ``warning``, ``notice`` for a line
    that only patterns take for a failure, or ``mention`` for news that speak of one. ``count`` is how often the same
    was said; ``echo_of`` is the line of the event that it repeats or follows from; ``tainted`` says that a CUDA error
    came before it in its origin.
    """

    form: str
    first: int
    last: int
    text: str
    kind: str = ""
    frames: tuple[str, ...] = ()
    origin: str = ""
    stage: str = ""
    level: str = "error"
    count: int = 1
    echo_of: int | None = None
    tainted: bool = False


@record
class LogMatch:
    """An event that a pattern knows; ``line`` says so. ``facts`` are the pattern's own and its named groups.

    ``confidence`` is that of the pattern, less where the rest of the log speaks against it.
    """

    event: LogEvent
    pattern: LogPattern
    line: int
    text: str
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    confidence: float = 0.0


@record
class LogReading:
    """One log, read to its end in bounded memory.

    ``events`` are the first ones, ``more_events`` counts those left out. ``versions`` are those that the log names
    (``torch``, ``triton``, ``cuda``, ``driver``, ``python``...). ``unknown`` are failures that no pattern knows.
    ``problems`` says what could not be read (encoding, lines cut, a truncated end); ``out_of_time``: the end of it was
    not read, because the rest took too long.
    """

    name: str
    size: int
    lines: int
    events: tuple[LogEvent, ...] = ()
    matches: tuple[LogMatch, ...] = ()
    more_events: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    unknown: tuple[LogEvent, ...] = ()
    problems: tuple[str, ...] = ()
    out_of_time: bool = False
