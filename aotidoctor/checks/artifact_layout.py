"""The members are not where the loader looks for them, or the loader refuses the archive's format marks.

What it does
    Works out the top folder as the C++ loader does (the first part of the first two member names, if they agree), looks
    for data/aotinductor/ below it, and reads ``archive_version`` and ``archive_format``.

Why it matters
    Zipping an unpacked package again easily loses the top folder or adds entries for directories. The loader then
    reports "Failed to find a generated cpp file or so file" and lists the very model that it did not find.

Example:
    model.pt2: observed data/aotinductor/ outside the top folder 'data', expected data/data/aotinductor/

When it is wrong
    What was measured to load anyway (a missing mark, stray members) is a warning, and the layout without a top
    folder that torch 2.6 and 2.7 write is a note. Other versions of torch look for the top folder in other ways.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import NO_PACKAGE, at_member
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, list_names

FIND = Finder("AD-ART-007", "artifact_layout")
MODELS = "data/aotinductor/"
VERSION, FORMAT = "0", "pt2"


def run(case: Case) -> Observations:
    """Findings about the top folder, entries for directories, and the archive's marks."""
    if case.artifact.kind is ArtifactKind.AOTI_DIRECTORY:
        return
    if case.artifact.kind is not ArtifactKind.AOTI_PACKAGE or not case.artifact.members:
        yield FIND.unchecked(NO_PACKAGE)
        return
    yield from _top_folder(case)
    # The loader extracts what is below data/aotinductor/<model>/; entries for other directories are not touched.
    harmful = [name for name in case.artifact.names_directory if name.partition(MODELS)[2]]
    if harmful:
        yield FIND.error(
            "directory-entries",
            harmful[0],
            observed=f"entries for directories: {list_names(harmful)}",
            expected="entries for files only",
            message=f"{harmful[0]} is an entry for a directory, which the loader unpacks as a file; zip with -D",
            source=at_member(case, None),
            facts={"entries": len(harmful)},
        )
    yield from _marks(case)


def _names(artifact: Artifact) -> list[str]:
    return [member.name for member in artifact.members]


def _top_folder(case: Case) -> Observations:
    names = _names(case.artifact)
    # As the C++ loader finds it, with its slash: from the first two names, empty if they disagree.
    tops = {name.partition("/")[0] if "/" in name else None for name in names[:2]}
    prefix = f"{top}/" if len(tops) == 1 and (top := tops.pop()) else ""
    if not any(name.startswith(prefix + MODELS) for name in names):
        flat = any(name.startswith(MODELS) for name in names)
        where = (
            f"the top folder {prefix.rstrip('/')!r}" if prefix else "the top level, as the first two members disagree"
        )
        yield FIND.error(
            "no-prefix" if flat else "mixed-prefix",
            case.artifact.path,
            observed=f"no {MODELS} below {where}",
            expected="one top-level folder that contains everything, as torch writes it",
            source=at_member(case, None),
            facts={"prefix": prefix, "first_members": tuple(names[:2])},
        )
        return
    strays = [name for name in names if not name.startswith(prefix) and name not in case.artifact.names_unsafe]
    if not strays:
        return
    yield FIND.warn(
        "mixed-prefix",
        strays[0],
        observed=f"members outside the top folder: {list_names(strays)}",
        expected=f"every member below {prefix}",
        message=f"members are outside {prefix} ({list_names(strays)}): torch reports the file as outdated and loads it",
        source=at_member(case, None),
        facts={"prefix": prefix, "strays": len(strays), "harmless": True},
    )


def _marks(case: Case) -> Observations:
    artifact = case.artifact
    tails = {name.removeprefix(f"{artifact.prefix}/") for name in _names(artifact)}
    if "archive_version" not in tails and (
        "version" in tails or any(one.layout == "legacy" for one in artifact.models)
    ):
        yield FIND.info(
            "old-layout",
            case.artifact.path,
            observed="no top folder and no archive_version, as torch 2.6 and 2.7 write it",
            expected="any layout that the loader accepts",
            message="the layout of torch 2.6 and 2.7: later releases report it as outdated and load it",
            source=at_member(case, None),
            facts={"harmless": True},
        )
    elif "archive_version" not in tails:
        yield _outdated(case, "no archive_version")
    elif artifact.archive_version is None:
        yield _outdated(case, "an archive_version that cannot be read")
    elif artifact.archive_version.strip() != VERSION:
        yield _refusal(case, "version", "archive_version", artifact.archive_version, VERSION)
    if artifact.archive_format is None:
        yield _outdated(case, "no archive_format")
    elif artifact.archive_format.strip() != FORMAT:
        yield _refusal(case, "format", "archive_format", artifact.archive_format, FORMAT)


def _refusal(case: Case, kind: str, mark: str, observed: str, expected: str) -> Evidence:
    return FIND.error(
        kind, mark, observed=repr(observed.strip()[:40]), expected=repr(expected), source=at_member(case, None)
    )


def _outdated(case: Case, observed: str) -> Evidence:
    return FIND.warn(
        "outdated",
        case.artifact.path,
        observed=observed,
        expected="the layout of torch 2.8 and later",
        message=f"{observed}: torch warns about an outdated file and loads it through the C++ loader",
        source=at_member(case, None),
        facts={"harmless": True},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
