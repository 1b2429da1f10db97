"""Names of members that every system can unpack: no folder can be left, no character is special."""

from __future__ import annotations

import re

_ODD = re.compile(r'[\x00-\x1f\x7f:*?"|\\]')
_LONGEST = 180
_PLAIN = str.maketrans({"<": "(", ">": ")"})


def safe_name(name: str) -> str:
    """``name`` without anything that a file system could misread; placeholders stand in parentheses."""
    parts = [_ODD.sub("_", part.translate(_PLAIN)).strip() for part in name.split("/")]
    kept = [part[-_LONGEST:] for part in parts if part.strip(".")]
    return "/".join(kept).encode("utf-8", "replace").decode() or "unnamed"


def distinct(names: list[str]) -> list[str]:
    """The names, the second of two equal ones with ``-2`` before its suffix; case does not tell names apart."""
    taken: set[str] = set()
    found = []
    for name in names:
        chosen, count = name, 1
        while chosen.casefold() in taken:
            count += 1
            stem, dot, suffix = name.rpartition(".")
            chosen = f"{stem}-{count}.{suffix}" if dot and "/" not in suffix else f"{name}-{count}"
        taken.add(chosen.casefold())
        found.append(chosen)
    return found
