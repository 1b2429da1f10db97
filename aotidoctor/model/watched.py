"""A program of the user's that was watched: how to start it, and what was seen of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.record import record
from aotidoctor.model.run import Ending


class StreamKind(enum.Enum):
    """What a stream of the program leads to, which decides how it is read."""

    TERMINAL = "a terminal"
    PIPE = "a pipe"
    SOCKET = "a socket"
    FILE = "a file"
    DEVICE = "a device"
    CLOSED = "closed"


@record
class Stream:
    """What a program wrote to ``stdout``, ``stderr``, or ``output`` where both lead to the same place.

    ``head`` and ``tail`` are all that was kept of ``size`` bytes; the tail begins where the head ends, or later.
    ``problem`` says why nothing, or not all, could be read.
    """

    name: str
    kind: StreamKind
    head: bytes = b""
    tail: bytes = b""
    size: int = 0
    problem: str | None = None

    @property
    def left_out(self) -> int:
        """Bytes between head and tail that were not kept."""
        return max(0, self.size - len(self.head) - len(self.tail))

    @property
    def text(self) -> bytes:
        """All that was kept, as one text; a line says how much is missing."""
        if not self.left_out:
            return self.head + self.tail
        return b"%s\n[%d bytes were not kept]\n%s" % (self.head, self.left_out, self.tail)


@record
class Seen:
    """What /proc told of a program and all that it started.

    ``opened`` are package files that a process had open, ``named`` those in a command line, ``unpacked`` the folders
    ``.../data/aotinductor/MODEL`` that code was mapped from, ``left`` such folders that appeared in the temporary
    directory meanwhile. ``libraries`` are libtorch's files. ``cwd`` and ``exe`` are the program's. ``holder`` is the
    process that code of a package was last mapped in.
    """

    opened: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    unpacked: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    cwd: str | None = None
    exe: str | None = None
    core_limit: str | None = None
    processes: int = 0
    looks: int = 0
    holder: int | None = None


@record
class Program:
    """What to start. ``env`` are changes; ``limit`` in seconds. ``core`` raises the soft limit of core files."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    limit: float | None = None
    core: bool = False


@record
class Watched:
    """A program that has ended.

    ``status`` is the wait status (None: it never ran), ``asked`` the signals that somebody sent to end it. ``core`` is
    the file, ``no_core`` why there is none. ``debugger_output`` and ``debugger_problem`` are as in ``Outcome``.
    ``exec_error`` is set where there was no program to start; ``refused`` is then the status that a shell would give.
    """

    argv: tuple[str, ...]
    ending: Ending
    status: int | None = None
    pid: int = 0
    seconds: float = 0.0
    started: float = 0.0
    peak_rss: int | None = None
    streams: tuple[Stream, ...] = ()
    seen: Seen = field(default_factory=Seen)
    asked: tuple[int, ...] = ()
    core: str | None = None
    no_core: str = ""
    debugger_output: str = ""
    debugger_problem: str | None = None
    oom: str | None = None
    exec_error: str | None = None
    refused: int = 127
