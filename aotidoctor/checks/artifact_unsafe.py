"""A member name points outside the folder that the package is unpacked into, or a member is a symbolic link.

What it does
    Looks for absolute names, ``..`` in names and symbolic links among the members. Nothing is ever extracted.

Why it matters
    The loader writes each member to the path in its name: a member named ../../x is really written there. Do not load
    such a package before you know who made it.

Example:
    ../../../../evil.txt: observed a name that points outside the package, expected a name inside the package

When it is wrong
    The fact itself is never wrong. A careless archiver may have written absolute names without harmful intent.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import NO_PACKAGE, at_member, is_package
from aotidoctor.model.case import Case

FIND = Finder("AD-ART-004", "artifact_unsafe")


def run(case: Case) -> Observations:
    """One finding per unsafe member."""
    if not is_package(case) and not case.artifact.members:
        yield FIND.unchecked(NO_PACKAGE)
        return
    for name in case.artifact.names_unsafe:
        parent = ".." in name.replace("\\", "/").split("/")
        yield FIND.error(
            "parent" if parent else "absolute",
            name,
            observed="a name that points outside the package" if parent else "an absolute name",
            expected="a name inside the package",
            source=at_member(case, None),
            facts={"member": name},
        )
    for name in case.artifact.names_symlink:
        yield FIND.error(
            "symlink",
            name,
            observed="a symbolic link",
            expected="a regular file",
            source=at_member(case, None),
            facts={"member": name},
        )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
