"""There is no file at the path, or the path is a broken link.

What it does
    Checks whether the path exists, and where a symbolic link points.

Why it matters
    The loader reports "Failed to initialize zip archive: file open failed", which reads like a damaged archive.
    git-annex and data caches leave broken links when the content was never fetched.

Example:
    model.pt2: observed a link to ../annex/objects/3f2.pt2, which does not exist, expected a file

When it is wrong
    The path is relative and aotidoctor was started in a different directory from the program.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import at_member
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case

FIND = Finder("AD-ART-001", "artifact_missing")


def run(case: Case) -> Findings:
    """At most one finding."""
    artifact = case.artifact
    if artifact.kind is not ArtifactKind.MISSING:
        return None
    linked = artifact.is_symlink
    return FIND.error(
        "dangling-link" if linked else "missing",
        artifact.path,
        observed=f"a link to {artifact.link_target}, which does not exist" if linked else "no such file",
        expected="a file",
        source=at_member(case, None),
        facts={"link_target": artifact.link_target},
    )


CHECK = FIND.check(run)
