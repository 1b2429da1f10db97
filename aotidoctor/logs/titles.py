"""What somebody says of a failure beside what was printed: the title of a report, a sentence around a traceback.

A paste that was cut has its cause in the words of the one who pasted it. They are asked where the printed lines tell
no more than a place, and where few lines were pasted that do not look like a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.logs.complaints import succeeds
from aotidoctor.logs.found import Found, lines_found, message_found
from aotidoctor.logs.growth import beyond, growing, shrinking, slower, waiting
from aotidoctor.logs.harmless import without_denials
from aotidoctor.logs.line import Line
from aotidoctor.logs.marks import has_mark
from aotidoctor.logs.origins import arisen
from aotidoctor.logs.prose import is_prose

# Somebody says it at the beginning or at the end.
_FIRST, _LAST = 4, 2
_NEWS = ("info", "warning", "doubtful")
# Of so few lines somebody chose each one.
_FEW = 10
_UNABLE = re.compile(r"(?i:\b(?:unable to|could not|can ?not|failed to)\b)")
_INSTEAD = re.compile(r"(?i:\b(?:default|fall\w*|instead|skip\w*|using|will|retry\w*|ignor\w*|continu\w*)\b)")


def title(lines: Sequence[Line], known: Sequence[tuple[int, int]], *, is_healthy: bool = False) -> Found | None:
    """The sentence that names a cause, the surest or the first. ``known``: first and last line of each failure.

    ``is_healthy``: nothing else in the log looks like a failure, so that only words count which are of one.
    """
    around = "\n".join(line.text for line in lines)
    free = [
        (at, line)
        for at, line in enumerate(lines)
        if line.text.strip()
        and (not line.stamped or (is_healthy and _is_unable(line)))
        and not any(first <= line.number <= last for first, last in known)
    ]
    best: tuple[float, Found] | None = None
    for at, line in [*free[:_FIRST], *free[_FIRST:][-_LAST:]]:
        found = lines_found(lines, at, at + 1, form="line")
        if (line.level in _NEWS and not (is_healthy and _is_unable(line))) or not is_prose(found):
            continue
        # "Out of memory: no" is a sentence on memory, too.
        asked = replace(found, said=((line.number, without_denials(line.text)),)) if is_healthy else found
        match = arisen(asked, line.number, around, is_told=not is_healthy)
        if match is not None and (best is None or match.confidence > best[0]):
            best = match.confidence, found
    return best[1] if best is not None else None


def _is_unable(line: Line) -> bool:
    """News of what could not be done, and of nothing that was done instead."""
    return line.level == "info" and _UNABLE.search(line.text) is not None and _INSTEAD.search(line.text) is None


def told(lines: Sequence[Line]) -> Found | None:
    """Of a few lines without the form of a failure the first sentence that names a cause of one."""
    said = [line for line in lines if line.text.strip()]
    if len(said) > _FEW or any(succeeds(line.text) for line in said):
        return None
    found = title(lines, (), is_healthy=True)
    return found or _numbers(lines, said)


def _numbers(lines: Sequence[Line], said: Sequence[Line]) -> Found | None:
    """Numbers that complain without a word."""
    texts = [line.text for line in said]
    grows = (has_mark("\n".join(texts)) and growing(texts)) or shrinking(texts)
    told = ((line, "slower" if slower(line.text) else "beyond" if beyond(line.text) else "") for line in said)
    whole = "growing" if grows else "waiting" if waiting(texts) else ""
    one, kind = next((pair for pair in told if pair[1]), (said[-1], whole) if whole else (None, ""))
    if one is None:
        return None
    return replace(message_found(lines, max(at for at, line in enumerate(lines) if line is one)), kind=kind)
