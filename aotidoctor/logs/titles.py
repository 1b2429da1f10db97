"""What somebody says of a failure beside what was printed: the title of a report, a sentence around a traceback.

A paste that was cut has its cause in the words of the one who pasted it. They are asked where the printed lines tell
no more than a place, and where few lines were pasted that do not look like a failure.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.logs.complaints import succeeds
from aotidoctor.logs.found import Found, numbered
from aotidoctor.logs.line import Line
from aotidoctor.logs.origins import arisen
from aotidoctor.logs.prose import is_prose

# Somebody says it at the beginning or at the end.
_FIRST, _LAST = 4, 2
_NEWS = ("info", "warning", "doubtful")
# Of so few lines somebody chose each one.
_FEW = 10


def title(lines: Sequence[Line], known: Sequence[tuple[int, int]], *, is_healthy: bool = False) -> Found | None:
    """The first sentence that names a cause; ``known`` are the first and the last line of each failure.

    ``is_healthy``: nothing else in the log looks like a failure, so that only words count which are of one.
    """
    around = "\n".join(line.text for line in lines)
    free = [
        (at, line)
        for at, line in enumerate(lines)
        if line.text.strip() and not line.stamped and not any(first <= line.number <= last for first, last in known)
    ]
    for at, line in [*free[:_FIRST], *free[_FIRST:][-_LAST:]]:
        found = Found(form="line", said=numbered([line]), first=at, end=at + 1)
        if line.level in _NEWS or not is_prose(found):
            continue
        if arisen(found, line.number, around, is_told=not is_healthy) is not None:
            return found
    return None


def told(lines: Sequence[Line]) -> Found | None:
    """Of a few lines without the form of a failure the first sentence that names a cause of one."""
    said = [line for line in lines if line.text.strip()]
    if len(said) > _FEW or any(succeeds(line.text) for line in said):
        return None
    return title(lines, (), is_healthy=True)
