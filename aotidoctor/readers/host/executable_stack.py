"""Whether this machine loads a library that asks for an executable stack.

Until glibc 2.40 ``dlopen`` made the stack executable; from 2.41 on it refuses such a library, unless the tunable
``glibc.rtld.execstack=2`` made the stack executable at the start of the process. SELinux may refuse in any case
(``execstack``, ``execmem``). What a service manager or a container forbids a process by prctl or seccomp cannot be
seen from files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.readers.host.proc import text_of_file

REFUSED_FROM = (2, 41)
_TUNABLE = re.compile(r"(?:^|:)glibc\.rtld\.execstack=(\d+)")


def executable_stack(glibc: str | None, environ: Mapping[str, str], root: str = "/") -> tuple[bool | None, str | None]:
    """``(permitted, why)``; None where it cannot be known from files."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", glibc or "")
    if found is None:
        return None, "the version of the C library is not known"
    if (int(found[1]), int(found[2])) >= REFUSED_FROM:
        asked = _TUNABLE.search(environ.get("GLIBC_TUNABLES", ""))
        if asked is None or asked[1] != "2":
            return False, f"glibc {glibc} refuses it (since 2.41)"
    if text_of_file(Path(root, "sys/fs/selinux/enforce")).strip() == "1":
        return None, "SELinux is enforcing, and its policy decides"
    return True, None
