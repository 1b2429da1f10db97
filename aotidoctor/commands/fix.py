"""``aotidoctor fix``: a repaired copy of a package, changed only in what the fix is about."""

from __future__ import annotations

import os
from collections.abc import Mapping

from aotidoctor.model.errors import UsageError, examining
from aotidoctor.model.record import record
from aotidoctor.readers.package.stack_flag import copy_patched, stack_patches

EXECSTACK = "execstack"
FIXES: Mapping[str, str] = {EXECSTACK: "clears the flag that requests an executable stack"}


@record
class Fixed:
    """``changes`` say what was changed and at which byte; empty where nothing had to be: the copy is then the same."""

    package: str
    output: str
    fix: str
    changes: tuple[str, ...]
    changed_bytes: int


def fix(name: str, package: str, output: str) -> Fixed:
    """Write the copy.

    Raises:
        UsageError: there is no such fix, or the copy would replace the package.
        CannotExamineError: the package cannot be read or changed, or the copy cannot be written.
    """
    if name not in FIXES:
        raise UsageError(f"there is no fix {name!r}; available: {', '.join(FIXES)}")
    if os.path.realpath(package) == os.path.realpath(output):
        raise UsageError("the package itself is not changed: give -o another name")
    patches = stack_patches(package)
    with examining(output):
        copy_patched(package, output, patches)
    return Fixed(
        package=package,
        output=output,
        fix=name,
        changes=tuple(f"{patch.what}, byte {patch.offset}" for patch in patches),
        changed_bytes=sum(len(patch.data) for patch in patches),
    )
