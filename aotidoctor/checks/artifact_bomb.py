"""A member is disproportionately large: it would fill disk or memory when unpacked.

What it does
    Compares the declared size of each member with its compressed size and with the size of the file, and looks for
    members that use the same bytes of the file.

Why it matters
    The loader extracts whatever the archive declares, without a limit.

Example:
    model/data/aotinductor/model/zeros.bin: observed 314572800 bytes from 305822, expected a member that was stored

When it is wrong
    Weights that are mostly zeros also compress well, if the package was zipped again with compression.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import NO_PACKAGE, at_member, is_package
from aotidoctor.model.case import Case

FIND = Finder("AD-ART-005", "artifact_bomb")


def run(case: Case) -> Observations:
    """One finding per oversized member, and one for members that share their bytes."""
    if not is_package(case) and not case.artifact.members:
        yield FIND.unchecked(NO_PACKAGE)
        return
    for name in case.artifact.oversized:
        member = next((entry for entry in case.artifact.members if entry.name == name), None)
        size, packed = (member.size, member.compressed_size) if member else (None, None)
        shrunk = size is not None and packed is not None and packed < size
        fitting = "an uncompressed (stored) member, as torch writes it" if shrunk else "members that fit into the file"
        yield FIND.error(
            "ratio" if shrunk else "declared",
            name,
            observed=f"{size} bytes from {packed}" if shrunk else f"{size} bytes in a file of {case.artifact.size}",
            expected=fitting,
            source=at_member(case, None),
            facts={"member": name, "size": size, "compressed_size": packed},
        )
    # Members laid over each other: one block of compressed data that is unpacked many times.
    names = case.artifact.overlapping
    if names:
        yield FIND.error(
            "overlap",
            names[0],
            observed=f"{len(names)} members that share bytes with another member",
            expected="members that do not share bytes",
            source=at_member(case, None),
            facts={"members": names[:20]},
        )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
