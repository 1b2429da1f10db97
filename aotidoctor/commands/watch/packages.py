"""From what was seen of a program to the packages it used.

The loader unpacks a package before code of it is mapped, and names the code by a hash of its source: an archive that
holds a member of that name is the one it was unpacked from. Where no archive is known, the unpacked folder is as good.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.model.watched import Seen

ROOT = "/data/aotinductor/"
_MOST_ARCHIVES = 64


@record
class UsedPackage:
    """A package, how that is known, and its model where that is known. ``loaded``: code of it was mapped."""

    path: str
    how: str
    model: str | None = None
    loaded: bool = False


def used_packages(seen: Seen, *, said: str = "", asked: str | None = None) -> tuple[UsedPackage, ...]:
    """The packages, those whose code was loaded first. ``said`` is the output, ``asked`` the user's choice."""
    candidates = _distinct((*((asked,) if asked else ()), *seen.opened, *seen.named))
    archives = {path: members for path in candidates if (members := _members(path)) is not None}
    found: dict[str, UsedPackage] = {}
    for folder in (*seen.unpacked, *seen.left):
        loaded = folder in seen.unpacked
        used = _of_folder(folder, archives, seen, loaded=loaded)
        if used is not None and (used.path not in found or loaded):
            found[used.path] = used
    opened = {os.path.realpath(path) for path in seen.opened}
    for path, members in archives.items():
        if path not in found and any(ROOT in f"/{name}" for name in members):
            how = "it was opened" if path in opened else "it is named in the command line"
            found[path] = UsedPackage(path=path, how=how)
    if asked is not None and os.path.realpath(asked) not in found:
        found[asked] = UsedPackage(path=asked, how="requested with --package")
    if not found:
        found |= {path: UsedPackage(path=path, how="named by the program") for path in _blamed(candidates, said)}
    first = os.path.realpath(asked) if asked else None
    return tuple(sorted(found.values(), key=lambda used: (os.path.realpath(used.path) != first, not used.loaded)))


def _of_folder(folder: str, archives: dict[str, frozenset[str]], seen: Seen, *, loaded: bool) -> UsedPackage | None:
    """The archive that the folder was unpacked from, or the folder itself, where it is still there."""
    root, _, model = folder.partition(ROOT)
    wanted = _files_below(folder) or frozenset()
    near = {path: members for path in _near(seen) if (members := _members(path)) is not None}
    for path, members in {**archives, **near}.items():
        if wanted and all(any(member.endswith(f"{ROOT}{model}/{name}") for member in members) for name in wanted):
            return UsedPackage(path=path, how="code of it was loaded" if loaded else "it was unpacked", model=model,
                               loaded=loaded)  # fmt: skip
    if wanted:
        return UsedPackage(path=root, how="code was loaded from here" if loaded else "it was unpacked here",
                           model=model, loaded=loaded)  # fmt: skip
    if len(archives) == 1 and loaded:
        # The folder has gone, as it does when a model is unloaded: there is no doubt which archive it was.
        return UsedPackage(path=next(iter(archives)), how="code of a package was loaded", model=model, loaded=True)
    return None


def _files_below(folder: str) -> frozenset[str]:
    """Names of the code files, which hold a hash."""
    with suppress(OSError):
        return frozenset(entry.name for entry in Path(folder).iterdir() if entry.name.endswith((".so", ".cpp")))
    return frozenset()


def _near(seen: Seen) -> list[str]:
    """Archives in the folder that the program ran in: one that was open for milliseconds may not have been seen."""
    with suppress(OSError):
        return [str(path) for path in sorted(Path(seen.cwd or "/").glob("*.pt2"))[:_MOST_ARCHIVES]]
    return []


def _blamed(paths: Sequence[str], said: str) -> list[str]:
    """Files that are no packages, or not there, and that the program complains of by name."""
    return [path for path in paths if path.endswith(".pt2") and os.path.basename(path) in said]  # noqa: PTH119


def _members(path: str) -> frozenset[str] | None:
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return None


def _distinct(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(os.path.realpath(path) for path in paths))
