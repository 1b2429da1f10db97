"""C++: ``terminate called``, libc++abi, c10's exceptions with their frames, gtest, glog's checks, a spoilt heap."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.found import Found, lines_found, message, message_found, numbered
from aotidoctor.logs.line import Line

START = re.compile(
    r"terminate called |libc\+\+abi(?:\.dylib)?: terminat|Exception raised from |C\+\+ exception with description|"
    r"\[enforce fail at |Check failed: |Check failure|double free or corruption|stack smashing detected|"
    r"(?:free|malloc|realloc|munmap_chunk|corrupted size|malloc_consolidate)(?:\(\)|:| vs)|corrupted (?:size|double)|"
    r"^\s*what\(\):|pure virtual method called"
)
_TERMINATE = re.compile(r"terminate called (?:after throwing an instance of '(?P<type>[^']+)'|(?P<else>.*))")
_LIBCXX = re.compile(
    r"libc\+\+abi(?:\.dylib)?: terminating (?:due to|with) (?:uncaught|"
    r"unexpected) exception of type (?P<type>[^:\s]+(?:::[^:\s]+)*)"
)
_WHAT = re.compile(r"^\s*what\(\):\s*")
_GTEST = re.compile(r"C\+\+ exception with description \"")
_HEAP = re.compile(
    r"double free or corruption|stack smashing detected|(?:free|malloc|realloc|munmap_chunk|malloc_consolidate)\(\): |"
    r"corrupted (?:size|double)|pure virtual method called"
)
_PATIENCE = 6


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The C++ failure that begins at ``at``."""
    text = lines[at].text
    terminate = _TERMINATE.search(text)
    if terminate is not None:
        return _terminated(
            lines, at, terminate["type"] or "", again=(terminate["else"] or "").startswith("recursively")
        )
    libcxx = _LIBCXX.search(text)
    if libcxx is not None:
        return message_found(lines, at, form="terminate", kind=libcxx["type"])
    if _WHAT.match(text):
        return message_found(lines, at, form="terminate")
    if "Exception raised from " in text:
        return _raised(lines, at)
    if _HEAP.search(text):
        return lines_found(lines, at, at + 1, form="heap", kind="SIGABRT")
    if "Check failure stack trace" in text:
        return lines_found(lines, at, at + 1, form="glog", follows=True)
    if "Check failed: " in text:
        return message_found(lines, at, form="glog")
    return message_found(lines, at, form="c10") if _GTEST.search(text) or "[enforce fail at " in text else None


def _terminated(lines: Sequence[Line], at: int, kind: str, *, again: bool) -> Found:
    """With the ``what()`` below it; other threads may have spoken in between."""
    for here in range(at + 1, min(at + 1 + _PATIENCE, len(lines))):
        if _WHAT.match(lines[here].text):
            said, frames, end = message(lines, here)
            words = _WHAT.sub("", said[0].text)
            texts = (*numbered(lines[at : at + 1]), (said[0].number, f"what(): {words}"), *numbered(said[1:]))
            return Found(form="terminate", kind=kind, said=texts, first=at, end=end, frames=tuple(frames))
        if _TERMINATE.search(lines[here].text):
            break
    return lines_found(lines, at, at + 1, form="terminate", kind=kind, follows=again)


def _raised(lines: Sequence[Line], at: int) -> Found:
    """The message of a c10 exception stands before the place that raised it."""
    said, frames, end = message(lines, at)
    before = at - 1
    has_message = at > 0 and lines[before].text and lines[before].stream == lines[at].stream and not lines[at].stamped
    first = before if has_message and not lines[at].text.partition("Exception raised from")[0].strip() else at
    return Found(form="c10", said=numbered([*lines[first:at], *said]), first=first, end=end, frames=tuple(frames))
