"""Tell which releases of torch may have built a package, and which release first had a C shim.

All that a new release adds to this is its section of ``shims.txt``.

A package records no release. Witnesses for "this one or later": a C shim that it imports, a function that its shared
object exports, the layout of the archive, a key of the metadata. Witnesses for "earlier than this one": a function
that every package of that release exports and this one does not, and again the layout. The table of shims, beside
this module, is read when it is first needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from aotidoctor.model.artifact import ModelEntry, SharedObject
from aotidoctor.model.record import record

# C shims: the first release whose headers declare each.
Release = tuple[int, int]
_TABLE = Path(__file__).with_name("shims.txt")
_EXECUTORCH_TABLE = _TABLE.with_name("executorch_shims.txt")
_PREFIXES = ("aoti_torch_", "torch_")


@record
class ShimTable:
    """``first`` maps a shim to the release that brought it, ``gone`` to the one that dropped it.

    ``exported`` are functions that every package exports, each from a release on.
    """

    first: Mapping[str, Release]
    gone: Mapping[str, Release]
    releases: tuple[Release, ...]
    exported: tuple[tuple[Release, str], ...]

    def has(self, name: str, release: Release) -> bool | None:
        """Whether ``release`` has the shim; None when neither the shim nor so new a release is in the table."""
        if name not in self.first:
            return None
        return self.first[name] <= release and not (name in self.gone and self.gone[name] <= release)


def is_shim(name: str) -> bool:
    """Whether a symbol has the name of a C shim of libtorch."""
    return name.startswith(_PREFIXES)


@lru_cache
def shim_table(runtime: str | None = None) -> ShimTable:
    """The table in this package: libtorch's, or that of ExecuTorch's runtime ``cuda``, ``metal`` or ``windows``."""
    first: dict[str, Release] = {}
    gone: dict[str, Release] = {}
    releases: list[Release] = []
    exported: list[tuple[Release, str]] = []
    ours = runtime is None
    table = _TABLE if runtime is None else _EXECUTORCH_TABLE
    for line in table.read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            name, _, release = line.strip("[]").rpartition(" ")
            ours = name == (runtime or "")
            if ours:
                major, _, minor = release.partition(".")
                releases.append((int(major), int(minor)))
        elif not ours or line.startswith("#"):
            continue
        elif line.startswith("-"):
            gone[line[1:]] = releases[-1]
        elif line.startswith("+"):
            exported.append((releases[-1], line[1:]))
        else:
            first[line] = releases[-1]
    return ShimTable(first=first, gone=gone, releases=tuple(releases), exported=tuple(exported))


def newest_release(names: Iterable[str], runtime: str | None = None) -> tuple[Release, str] | None:
    """The newest release that one of ``names`` needs, and that name; None when none is in the table."""
    table = shim_table(runtime).first
    found = [(table[name], name) for name in names if name in table]
    return max(found, key=lambda entry: entry[0]) if found else None


def release_of(version: str) -> Release | None:
    """``(2, 13)`` of ``2.13.0+cpu`` or ``2.13``; None of something else."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?![\d])", version)
    return (int(found[1]), int(found[2])) if found else None


def release_text(release: Release) -> str:
    """The release as text: ``2.13``."""
    return f"{release[0]}.{release[1]}"


# Releases that may have built a package.
_ALWAYS = "AOTInductorModelContainerRun"
_PLATFORM_KEY = "AOTI_PLATFORM"
# The loader of 2.7 looks for its files where the layout without a prefix has them.
PREFIX: Release = (2, 8)


@record
class ReleaseWitness:
    """Evidence of the release: it is ``least`` or later, or it is earlier than ``before``."""

    what: str
    least: Release | None = None
    before: Release | None = None


@record
class BuiltBy:
    """The release that built a package: ``least`` or later, earlier than ``before``; None where not known.

    ``because`` and ``before_because`` are the evidence for the two bounds.
    """

    least: Release | None = None
    before: Release | None = None
    because: str = ""
    before_because: str = ""


def built_by(model: ModelEntry, compiled: SharedObject | None, *, stamped: bool = True) -> BuiltBy:
    """The range of releases that fits all witnesses. ``compiled`` is the object that would be loaded.

    ``stamped``: the release that a stamp states is one of them.
    """
    found = list(_witnesses(model, compiled))
    for entry in model.metadata if stamped else ():
        try:
            stamp = json.loads(entry.stamp or "{}")
        except (ValueError, RecursionError):
            continue
        release = release_of(str(stamp.get("torch"))) if isinstance(stamp, dict) else None
        if release is not None:
            text, following = release_text(release), (release[0], release[1] + 1)
            found.append(ReleaseWitness(what=f"its stamp states torch {text}", least=release, before=following))
    least = max((item for item in found if item.least), key=lambda item: item.least or (0, 0), default=None)
    before = min((item for item in found if item.before), key=lambda item: item.before or (0, 0), default=None)
    return BuiltBy(
        least=least.least if least else None,
        before=before.before if before else None,
        because=least.what if least else "",
        before_because=before.what if before else "",
    )


def loads_from(model: ModelEntry, compiled: SharedObject | None) -> tuple[Release, str] | None:
    """The least release whose libtorch and loader accept the package, and the reason; None when not known."""
    shims = newest_release(ref.name for ref in compiled.undefined if not ref.weak) if compiled is not None else None
    needs = [(shims[0], f"it imports {shims[1]}")] if shims is not None else []
    if has_top_folder(model):
        needs.append((PREFIX, "the archive has a top folder, which the loader of 2.7 does not look into"))
    return max(needs, key=lambda entry: entry[0], default=None)


def has_top_folder(model: ModelEntry) -> bool:
    """Whether the archive puts everything into one folder, which the loader of 2.7 does not look into."""
    return model.layout == "pt2" and bool(model.root)


def _witnesses(model: ModelEntry, compiled: SharedObject | None) -> Iterator[ReleaseWitness]:
    if has_top_folder(model):
        yield ReleaseWitness(what="the archive has a top folder", least=PREFIX)
    elif model.layout == "legacy":
        yield ReleaseWitness(what="the archive has no top folder", before=PREFIX)
    if any(_PLATFORM_KEY in entry.values for entry in model.metadata):
        yield ReleaseWitness(what=f"its metadata have {_PLATFORM_KEY}", least=(2, 10))
    if compiled is None or compiled.format != "elf" or compiled.problem:
        return
    shims = newest_release(ref.name for ref in compiled.undefined)
    if shims is not None:
        yield ReleaseWitness(what=f"it imports {shims[1]}", least=shims[0])
    exported = compiled.defined_entry_points
    if _ALWAYS not in exported:
        return
    for release, name in shim_table().exported:
        if name in exported:
            yield ReleaseWitness(what=f"it exports {name}", least=release)
        else:
            yield ReleaseWitness(what=f"it does not export {name}", before=release)
