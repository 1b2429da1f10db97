"""g++ for the trial: less optimising, and what all models include is read once: ``python quick_compiler.py WORDS...``.

Most of the time of a compile goes into the same headers, and -O3 takes the longer for kernels that run for microseconds.
The first source that is compiled with some flags leaves its headers precompiled, beside this interpreter's other files
in ``TRIAL_HEADERS``; what else a later source includes is read as ever.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

_INCLUDE = re.compile(r'#include [<"][^>"]+[>"]')


def main() -> None:
    """Become g++."""
    words = ["-O1" if word in ("-O2", "-O3") else word for word in sys.argv[1:]]
    sources = [word for word in words if word.endswith(".cpp")]
    header = _header(sources[0], words) if len(sources) == 1 and "-c" in words else None
    os.execvp("g++", ["g++", *(["-include", str(header)] if header is not None else []), *words])


def _header(source: str, words: list[str]) -> Path | None:
    """The precompiled header for these flags; None where it cannot be made."""
    includes = _includes(Path(source).read_text(encoding="utf-8"))
    target = words[words.index("-o") + 1] if "-o" in words else None
    flags = [word for word in words if word not in (source, target, "-o", "-c")]
    if not includes:
        return None
    name = hashlib.sha256("\0".join([*flags, includes[0]]).encode()).hexdigest()[:16]
    header = Path(os.environ["TRIAL_HEADERS"]) / name / "all.h"
    made = header.with_suffix(".h.gch")
    if not header.parent.exists():
        header.parent.mkdir(parents=True)
        header.write_text("\n".join(includes) + "\n")
        unfinished = header.with_suffix(".part")
        done = subprocess.run(["g++", *flags, "-x", "c++-header", header, "-o", unfinished], check=False)
        if done.returncode == 0:
            unfinished.rename(made)
    return header if made.exists() else None


def _includes(text: str) -> list[str]:
    """Those outside of any condition, in their order."""
    found, depth = [], 0
    for line in text.splitlines():
        depth += line.startswith("#if") - line.startswith("#endif")
        if depth == 0 and _INCLUDE.fullmatch(line.strip()):
            found.append(line.strip())
    return list(dict.fromkeys(found))


if __name__ == "__main__":
    main()
