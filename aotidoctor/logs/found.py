"""What a form finds: one failure in a list of lines of one stream."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.logs.line import Line
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.log import LogEvent, LogMatch, LogPattern
from aotidoctor.model.record import record

# Of a message.
MOST_LINES, MOST_CHARACTERS = 40, 6000
_C10_FRAME = re.compile(r"^\s*frame #\d+: (?P<symbol>.*?)(?: \+ 0x[0-9a-f]+)?(?: \(0x[0-9a-f]+ in (?P<library>.+)\))?$")
# Lines that begin something else, whatever message they stand in.
_STARTS = re.compile(
    r"Traceback \(most recent call last\)|^During handling of the above|^The above exception was the direct|"
    r"^terminate called |^libc\+\+abi|Segmentation fault|Abort trap|"
    r"Bus error|^Killed\b|^[\s|]*\+-{3}|^Aborted\b|core dumped\)|^Fatal Python error|"
    r"^==+(?:\d+=+)?ERROR: |: (?:fatal )?error: |^Error: |undefined reference to|^\*\*\* |^Thread \d+ |"
    r"^(?:Process|Program) (?:\d+ )?(?:received|stopped|terminated|completed)|^[\w.]*(?:Error|Exception): |^\S*[$#] |"
    r"^(?:FAILED|ERROR|PASSED) "
)
_CONTINUES = re.compile(
    r"^(?:\s|[a-z(\[{]|Exception raised|While |Mismatched|Greatest|Available|CUDA kernel|For |Compile |Device|Original|"
    r"Set |You |The following|This |If |Please|Could not|Suggest|Output:|Command:|Potential|Triggered|Note|Search)"
)


@record
class Found:
    """One failure.

    ``said`` are the lines of the message with their numbers, ``first`` and ``end`` the place in the list (the latter
    not included). ``follows`` tells that such a line is said after a failure, never for one of its own; ``chained``
    that it was raised while or because of the one before it.
    """

    form: str
    said: tuple[tuple[int, str], ...]
    first: int
    end: int
    kind: str = ""
    frames: tuple[str, ...] = ()
    stage: str = ""
    level: str = "error"
    follows: bool = False
    chained: bool = False

    @property
    def text(self) -> str:
        """The message."""
        return "\n".join(text for _, text in self.said)[:MOST_CHARACTERS]

    def match(self, pattern: LogPattern, line: int, text: str, facts: Mapping[str, FactValue]) -> LogMatch:
        """``pattern`` as one that knows it by line ``line``, which says ``text``."""
        # The event with all that is known of it takes its place when the log was read.
        event = LogEvent(form=self.form, first=line, last=line, text=self.text)
        return LogMatch(event=event, pattern=pattern, line=line, text=text, facts=facts, confidence=pattern.confidence)


def message_found(
    lines: Sequence[Line], at: int, *, form: str = "line", kind: str = "", follows: bool = False
) -> Found:
    """The message that begins at ``at`` as a failure, with what continues it."""
    said, frames, end = message(lines, at)
    return Found(form=form, kind=kind, said=numbered(said), first=at, end=end, frames=tuple(frames), follows=follows)


def lines_found(
    lines: Sequence[Line],
    first: int,
    end: int,
    *,
    form: str,
    kind: str = "",
    stage: str = "",
    level: str = "error",
    follows: bool = False,
) -> Found:
    """The lines from ``first`` to ``end`` (not included) as a failure."""
    said = numbered(lines[first:end])
    return Found(form=form, kind=kind, said=said, first=first, end=end, stage=stage, level=level, follows=follows)


def end_below(lines: Sequence[Line], at: int, below: re.Pattern[str], most: int) -> int:
    """Where the lines end which ``below`` knows and which follow the one at ``at``; ``most`` is how many with it."""
    end = at + 1
    while end < min(len(lines), at + most) and below.search(lines[end].text):
        end += 1
    return end


def numbered(lines: Sequence[Line]) -> tuple[tuple[int, str], ...]:
    """The lines as ``Found.said``."""
    return tuple((line.number, line.text) for line in lines)


def frame_of(text: str) -> str | None:
    """The symbol of a ``frame #3: c10::Error::Error(...)`` line."""
    found = _C10_FRAME.match(text)
    return None if found is None else found["symbol"] or found["library"] or "??"


def message(lines: Sequence[Line], at: int, *, stamped: bool = False) -> tuple[list[Line], list[str], int]:
    """The lines of the message that begins at ``at``, the frames below it, and where it ends.

    ``stamped``: every line of it has a logger's prefix, so that such a prefix does not end it.
    """
    said, frames = [lines[at]], []
    here = at + 1
    while here < len(lines) and len(said) < MOST_LINES:
        line = lines[here]
        frame = frame_of(line.text)
        if frame is not None:
            frames.append(frame)
        elif not line.text:
            follower = next((one for one in lines[here + 1 : here + 3] if one.text), None)
            if follower is None or not _CONTINUES.match(follower.text) or _STARTS.search(follower.text):
                break
        elif (line.stamped and not stamped) or _STARTS.search(line.text):
            break
        else:
            said.append(line)
        here += 1
    return said, frames, here
