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

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_PACKAGE, at_member, is_package
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence

FIND = Finder("AD-ART-005", "artifact_bomb")


def run(case: Case) -> Findings:
    """One finding per oversized member, and one for members that share their bytes."""
    if not is_package(case) and not case.artifact.members:
        return FIND.unchecked(NO_PACKAGE)
    found = [_oversized_evidence(case, name) for name in case.artifact.oversized]
    return [*found, _overlapping(case)] if case.artifact.overlapping else found


def _overlapping(case: Case) -> Evidence:
    """Members laid over each other: one block of compressed data that is unpacked many times."""
    names = case.artifact.overlapping
    return FIND.error(
        "overlap",
        names[0],
        observed=f"{len(names)} members that share bytes with another member",
        expected="members that do not share bytes",
        source=at_member(case, None),
        facts={"members": names[:20]},
    )


def _oversized_evidence(case: Case, name: str) -> Evidence:
    member = next((entry for entry in case.artifact.members if entry.name == name), None)
    size = member.size if member else None
    packed = member.compressed_size if member else None
    shrunk = member is not None and member.compressed_size < member.size
    return FIND.error(
        "ratio" if shrunk else "declared",
        name,
        observed=f"{size} bytes from {packed}" if shrunk else f"{size} bytes in a file of {case.artifact.size}",
        expected="an uncompressed (stored) member, as torch writes it" if shrunk else "members that fit into the file",
        source=at_member(case, None),
        facts={"member": name, "size": size, "compressed_size": packed},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
