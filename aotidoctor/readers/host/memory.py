"""Memory: what the machine has, what the control group allows, what the address-space limit leaves. All in bytes."""

from __future__ import annotations

import resource
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.readers.host.proc import text_of_file

# Version 1 control groups print "no limit" as the largest multiple of a page.
_UNLIMITED = 1 << 60


@record
class Memory:
    """``available`` and ``total`` respect the control group; None where nothing could be read."""

    available: int | None
    total: int | None
    address_space_limit: int | None


def read_memory(root: str = "/") -> Memory:
    """Facts from /proc/meminfo, the control group and RLIMIT_AS."""
    info = _meminfo(Path(root, "proc/meminfo"))
    limit, used = _control_group(Path(root))
    soft, _hard = resource.getrlimit(resource.RLIMIT_AS)
    free = None if limit is None else max(limit - used, 0)
    return Memory(
        available=_least(info.get("MemAvailable"), free),
        total=_least(info.get("MemTotal"), limit),
        address_space_limit=None if soft == resource.RLIM_INFINITY else soft,
    )


def _least(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return min(known) if known else None


def _meminfo(path: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in text_of_file(path).splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdecimal():
            found[name] = int(number[0]) * 1024
    return found


def _control_group(root: Path) -> tuple[int | None, int]:
    """``(limit, used)`` of the tightest group on the way up; limit None when there is none."""
    best: tuple[int | None, int] = (None, 0)
    for line in text_of_file(root / "proc/self/cgroup").splitlines():
        _number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            base, names = root / "sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            base, names = root / "sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts), -1, -1):
            folder = base.joinpath(*parts[:depth])
            limit, used = _number_in(folder / names[0]), _number_in(folder / names[1]) or 0
            if limit is not None and limit < _UNLIMITED and (best[0] is None or limit - used < best[0] - best[1]):
                best = (limit, used)
    return best


def _number_in(path: Path) -> int | None:
    text = text_of_file(path).strip()
    return int(text) if text.isdecimal() else None
