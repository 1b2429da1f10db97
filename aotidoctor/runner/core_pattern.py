"""Where the kernel puts a core file, as ``/proc/sys/kernel/core_pattern`` says. Pure."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from aotidoctor.model.record import record

FILE, SYSTEMD, APPORT, PROGRAM, NONE = "file", "systemd", "apport", "program", "none"
_FIELD = re.compile(r"%(.?)", re.DOTALL)


@record
class CorePattern:
    """``kind`` is ``FILE``, ``SYSTEMD``, ``APPORT``, ``PROGRAM`` or ``NONE``; ``text`` the file name or program.

    ``uses_pid`` says that the number of the process is appended to a name that does not hold it.
    """

    kind: str
    text: str
    uses_pid: bool = False


def read_core_pattern(pattern: str, uses_pid: str = "0") -> CorePattern:
    """The meaning of both files' contents."""
    text = pattern.rstrip("\n")
    if not text:
        # Then a name is still made, of the number alone, but only where that is asked for.
        alone = uses_pid.strip() == "1"
        return CorePattern(kind=FILE if alone else NONE, text="", uses_pid=alone)
    if not text.startswith("|"):
        return CorePattern(kind=FILE, text=text, uses_pid=uses_pid.strip() == "1" and "%p" not in text)
    program = (text[1:].split() or [""])[0]
    name = PurePosixPath(program).name
    kind = SYSTEMD if name == "systemd-coredump" else APPORT if name == "apport" else PROGRAM
    return CorePattern(kind=kind, text=program)


def glob_of(pattern: CorePattern, facts: Mapping[str, str], cwd: str) -> str:
    """A glob that matches the file; ``facts`` maps letters of the pattern (``p``, ``e``...) to what is known."""

    def fill(letter: str) -> str:
        if letter == "%":
            return "%"
        return glob.escape(facts[letter]) if letter in facts else "*" if letter else ""

    parts = _FIELD.split(pattern.text)
    text = "".join(glob.escape(part) if index % 2 == 0 else fill(part) for index, part in enumerate(parts))
    text += f".{facts['p']}" if pattern.uses_pid else ""
    return text if text.startswith("/") else f"{glob.escape(cwd.rstrip('/'))}/{text}"
