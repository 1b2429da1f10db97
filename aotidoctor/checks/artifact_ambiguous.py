"""The package contains something twice: two members with one name, or two shared objects for one model.

What it does
    Counts members per name, and shared objects per model.

Why it matters
    Recent loaders refuse two wrapper libraries, and older ones silently take the last one, which may be a different
    model.

Example:
    data/aotinductor/model: observed 2 shared objects, expected 1

When it is wrong
    A duplicate of a member that is not loaded does no harm and is a warning. Of several members with one name, the last
    wins.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import NO_PACKAGE, at_member, is_package
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import list_names

FIND = Finder("AD-ART-006", "artifact_ambiguous")


def run(case: Case) -> Observations:
    """One finding per duplicate name and per model with several shared objects."""
    if not is_package(case):
        yield FIND.unchecked(NO_PACKAGE)
        return
    for name in case.artifact.names_duplicate:
        yield (FIND.error if name.endswith(".so") else FIND.warn)(
            "duplicate",
            name,
            observed="the archive contains this member more than once",
            expected="unique member names",
            source=at_member(case, None),
            facts={"member": name},
        )
    for model in case.artifact.models:
        names = list(dict.fromkeys(item.member for item in model.shared_objects))
        wrappers = [name for name in names if name.endswith(".wrapper.so")] if model.layout != "legacy" else names
        if len(wrappers) > 1:
            files = list_names([name.rpartition("/")[2] for name in wrappers])
            yield FIND.error(
                "two-so",
                f"data/aotinductor/{model.name}",
                observed=f"{len(wrappers)} shared objects: {files}",
                expected="1",
                source=at_member(case, wrappers[-1]),
                facts={"model": model.name, "members": tuple(wrappers)},
            )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
