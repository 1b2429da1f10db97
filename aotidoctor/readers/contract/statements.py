"""A section of C++ as the generator lays it out, cut into statements.

The generator writes a statement per line, with a few exceptions: calls whose arguments are on lines of their own, raw
strings, and comments between ``/*`` and ``*/``, which hold the source of Triton kernels and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

# No statement of the generator is on more lines than this.
MOST_LINES = 400
_RAW, _RAW_END = 'R"(', ')"'
_OPEN = ("(", ",", "=", "<<")


def statements(text: str, line: int) -> Iterator[tuple[int, str]]:
    """``(line, statement)``, blank lines left out; ``line`` is the number of the first line of ``text``."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        start = at
        found = lines[at].strip()
        at += 1
        if found.startswith("/*"):
            at = _after_comment(lines, start)
            if at > len(lines):
                # It hides the rest, whatever it holds.
                yield line + start, f"{found} without its end"
            continue
        if _is_open(found):
            at, found = _joined(lines, start)
        if found:
            yield line + start, found


def _is_open(text: str) -> bool:
    return not text.startswith("//") and (text.endswith(_OPEN) or (_RAW in text and _RAW_END not in text))


def _after_comment(lines: list[str], at: int) -> int:
    while at < len(lines) and "*/" not in lines[at]:
        at += 1
    return at + 1


def _joined(lines: list[str], start: int) -> tuple[int, str]:
    """The statement that begins at ``start``, on one line, and where the next one begins."""
    parts: list[str] = []
    raw = False
    for at in range(start, min(start + MOST_LINES, len(lines))):
        text = lines[at].strip()
        parts.append(text)
        if raw:
            raw = _RAW_END not in text
        elif _RAW in text:
            raw = _RAW_END not in text.rpartition(_RAW)[2]
        if not raw and not text.endswith(_OPEN) and not text.startswith("//"):
            return at + 1, " ".join(parts)
    # Torn: what was passed is one statement that nobody understands; to go back would take time without bound.
    return start + len(parts), " ".join(parts)
