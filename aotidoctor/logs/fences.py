"""Source code that a report quotes: what a program would say is no word of its log.

Reports are written in Markdown, and a block of it names its language. Many put output into such blocks, too: so only a
block that has statements, and nothing that a program prints when it fails, is taken for source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.logs.line import Line

_FENCE = "```"
_LANGUAGE = re.compile(
    r"```\s?(?i:python3?|py|cpp|c\+\+|cxx|c|cuda|cu|rust|go|java|ya?ml|toml|dockerfile|cmake|diff|patch)\b"
)
_STATEMENT = re.compile(
    r"[+-]?\s{0,40}(?:import|from|def|class|with|for|if|try|return|#include|template|namespace|FROM|RUN|@\w+|[\w.]+\s?=\s|[\w-]+:(?:\s|$))"
)
_OUTPUT = re.compile(
    r"Traceback \(most recent|^\s*(?:\w+\.)*\w*(?:Error|Exception)\b(?::|$)|^\s*File \"|^E  "
    r"|^(?:ERROR|WARNING|INFO|FATAL)\b"
    r"|(?i:\berror: |segmentation fault|core dumped)|terminate called|^\s*what\(\): |^frame #\d|\[rank\d"
)


def without_sources(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines, those of quoted source emptied."""
    marks = [at for at, line in enumerate(lines) if line.text.startswith(_FENCE)]
    if not marks:
        return lines
    left = list(lines)
    for at, mark in enumerate(marks[:-1]):
        block = lines[mark + 1 : marks[at + 1]]
        if _LANGUAGE.match(lines[mark].text) is not None and _is_source(block):
            left[mark + 1 : marks[at + 1]] = [replace(line, text="") for line in block]
    return left


def _is_source(block: Sequence[Line]) -> bool:
    texts = [line.text for line in block]
    is_said = any(_STATEMENT.match(text) is not None for text in texts)
    # A logger's stamp was taken off: somebody printed it.
    return is_said and not any(line.stamped or _OUTPUT.search(line.text) is not None for line in block)
