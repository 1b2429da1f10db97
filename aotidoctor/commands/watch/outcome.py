"""A watched program as the outcome of a run: what a report, a probe and a signature know how to read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.model.jobs import Job
from aotidoctor.model.record import record
from aotidoctor.model.run import Ending, NotStarted, Outcome, Request, Signalled
from aotidoctor.model.watched import Stream, StreamKind, Watched
from aotidoctor.probes.watched_program import NAME, raised_in

TAIL = 16 * 1024
# Of a text that is looked into for the exception: the last words.
_LOOKED_INTO = 256 * 1024
_UNPACKED = re.compile(
    rb"(?<![\w./-])(/[^\s()\"']{0,300}/aotinductor_\w{6}/[^\s()\"']{0,100}data/aotinductor/[^/\s()\"']{1,200})"
    rb"/[^/\s()\"']{1,200}\.so\b"
)


@record
class Repeat:
    """Which run it was: ``name`` of the probe, what it was for, what was changed, and the id that the report gives."""

    name: str = NAME
    id: str = "W1"
    purpose: str = "the program as it was started"
    env: Mapping[str, str | None] | None = None


def outcome_of(watched: Watched, repeat: Repeat, *, timeout: float = 0.0) -> Outcome:
    """The outcome."""
    streams = {stream.name: stream for stream in watched.streams}
    errors = streams.get("stderr") or streams.get("output")
    output = streams.get("stdout")
    said = _tail(errors, _LOOKED_INTO) + ("\n" + _tail(output, _LOOKED_INTO) if output is not None else "")
    error = raised_in(_tail(errors, _LOOKED_INTO)) or raised_in(said)
    failed = watched.status != 0 and not isinstance(watched.ending, NotStarted)
    request = Request(
        probe=repeat.name, job="watch", payload=Job(), env=repeat.env or {}, timeout=timeout, purpose=repeat.purpose
    )
    return Outcome(
        id=repeat.id,
        request=request,
        ending=watched.ending,
        stage=stage_of(watched),
        error=error if failed and _may_be_its_end(watched.ending) else None,
        stdout_tail=_tail(output, TAIL),
        stderr_tail=_tail(errors, TAIL),
        stdout_bytes=output.size if output is not None else 0,
        stderr_bytes=errors.size if errors is not None else 0,
        seconds=watched.seconds,
        argv=watched.argv,
        peak_rss=watched.peak_rss,
        debugger_output=watched.debugger_output,
        debugger_problem=watched.debugger_problem,
    )


def _may_be_its_end(ending: Ending) -> bool:
    """An exception that nobody caught ends a program by an exit status or by abort, and by no other signal."""
    return not isinstance(ending, Signalled) or ending.name == "SIGABRT"


def stage_of(watched: Watched) -> str:
    """How far it came, as far as that shows from outside: was code of a package mapped, a package open or unpacked?"""
    if watched.seen.unpacked:
        return "run1"
    return "load" if watched.seen.opened or watched.seen.left else "start"


def with_said(watched: Watched) -> Watched:
    """With the folders of packages that the output names: a stack of C++ tells where the code was."""
    said = dict.fromkeys(
        found[1].decode("utf-8", "replace") for stream in watched.streams for found in _UNPACKED.finditer(stream.text)
    )
    unpacked = tuple(dict.fromkeys((*watched.seen.unpacked, *said)))
    return replace(watched, seen=replace(watched.seen, unpacked=unpacked))


def texts_of(watched: Watched) -> tuple[Stream, ...]:
    """The streams with something in them, stderr first: errors are there, as a rule."""
    order = {"stderr": 0, "output": 1, "stdout": 2}
    return tuple(sorted((one for one in watched.streams if one.size), key=lambda one: order[one.name]))


def unread(watched: Watched) -> tuple[str, ...]:
    """What of the output could not be read, or was not kept, in words."""
    found = [one.problem for one in watched.streams if one.problem and one.kind is not StreamKind.CLOSED]
    found += [
        f"{one.name}: {one.left_out:,} of {one.size:,} bytes were not kept (the first {len(one.head):,} and the last "
        f"{len(one.tail):,} were)"
        for one in watched.streams
        if one.left_out
    ]
    return tuple(found)


def _tail(stream: Stream | None, size: int) -> str:
    if stream is None:
        return ""
    data = stream.tail if len(stream.tail) >= size else stream.text
    return data[-size:].decode("utf-8", "replace")
