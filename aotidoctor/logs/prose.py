"""Whether a line is a sentence of somebody's own, and no message of a program, no source code and no frame."""

from __future__ import annotations

import re

from aotidoctor.logs.found import Found

# What begins as a program's message does.
_MESSAGE = re.compile(
    r"\W{0,8}(?:[\w.:]{0,120}(?:Error|Exception|Warning|Interrupt)\b(?: ?:|\()|what\(\)|terminate called"
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|CRITICAL|NOTE)\]?\b ?:)"
)
# Lines of source code, of stacks, of shells and of compilers.
_CODE = re.compile(
    r"^\s{0,40}(?:File \"|at |#\d|frame #|\$ |>>> |\d{4}-\d\d-\d\d|def |class |from \S{1,200} import|import |return )"
    r"|^\s{0,40}(?:assert |@)|^\s{4}|^f?[\"'(]|[;{}]$|^[\w.,\[\] ]{1,60} = |Warning:|\.(?:py|cpp|cc|h|cu|cuh):\d"
    r"|\bIn (?:\w{1,20} ){0,3}function |^(?:FAILED|ERROR|PASSED) |\.py::"
)
_WORD = re.compile(r"[A-Za-z][a-z]|\b[A-Z]{2}")
_SENTENCE = 3


def is_prose(found: Found) -> bool:
    """Whether somebody tells it in a sentence of his own, and no program in a message."""
    if found.frames or found.form not in ("line", "signal") or _MESSAGE.match(found.text) is not None:
        return False
    first = found.text.partition("\n")[0]
    return _CODE.search(first) is None and sum(_WORD.search(word) is not None for word in first.split()) >= _SENTENCE
