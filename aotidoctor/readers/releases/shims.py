"""The table of C shims: the first release of torch whose headers declare each. Read when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from aotidoctor.model.record import record

Release = tuple[int, int]
_TABLE = "shims.txt"
_PREFIXES = ("aoti_torch_", "torch_")


@record
class ShimTable:
    """``first`` maps a shim to the release that brought it, ``gone`` to the one that dropped it."""

    first: Mapping[str, Release]
    gone: Mapping[str, Release]
    releases: tuple[Release, ...]

    def has(self, name: str, release: Release) -> bool | None:
        """Whether ``release`` has the shim; None when neither the shim nor so new a release is in the table."""
        if name not in self.first:
            return None
        return self.first[name] <= release and not (name in self.gone and self.gone[name] <= release)


def is_shim(name: str) -> bool:
    """Whether a symbol is called like a C shim of libtorch."""
    return name.startswith(_PREFIXES)


@lru_cache(maxsize=1)
def shim_table() -> ShimTable:
    """The table in the package."""
    first: dict[str, Release] = {}
    gone: dict[str, Release] = {}
    releases: list[Release] = []
    for line in Path(__file__).with_name(_TABLE).read_text(encoding="ascii").splitlines():
        if line.startswith("["):
            major, _, minor = line.strip("[]").partition(".")
            releases.append((int(major), int(minor)))
        elif line.startswith("-"):
            gone[line[1:]] = releases[-1]
        elif not line.startswith("#"):
            first[line] = releases[-1]
    return ShimTable(first=first, gone=gone, releases=tuple(releases))


def newest(names: Iterable[str]) -> tuple[Release, str] | None:
    """The newest release that one of ``names`` needs, and that name; None when none is in the table."""
    table = shim_table().first
    found = [(table[name], name) for name in names if name in table]
    return max(found, key=lambda entry: entry[0]) if found else None


def release_of(version: str) -> Release | None:
    """``(2, 13)`` of ``2.13.0+cpu`` or ``2.13``; None of something else."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?![\d])", version)
    return (int(found[1]), int(found[2])) if found else None


def release_text(release: Release) -> str:
    """``2.13``."""
    return f"{release[0]}.{release[1]}"
