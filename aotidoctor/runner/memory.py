"""Who was killed for memory: the kernel counts it, per control group and for the whole machine."""

from __future__ import annotations

import re

from aotidoctor.runner.proc_files import read_text

_COUNTER = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def oom_kills() -> dict[str, int]:
    """Counter files that this process can see -> number of OOM kills so far (both cgroup versions, and the host)."""
    counts: dict[str, int] = {}
    for path in (*_counter_files(), "/proc/vmstat"):
        found = _COUNTER.search(read_text(path))
        if found:
            counts[path] = int(found[1])
    return counts


def risen(before: dict[str, int], after: dict[str, int]) -> str | None:
    """The first counter that rose, as text; None when none did."""
    for path, count in after.items():
        if count > before.get(path, count):
            return f"oom_kill in {path} rose from {before[path]} to {count}"
    return None


def _counter_files() -> list[str]:
    files = []
    for line in read_text("/proc/self/cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            files += _upwards("/sys/fs/cgroup", path, "memory.events")
        elif "memory" in controllers.split(","):
            files += _upwards("/sys/fs/cgroup/memory", path, "memory.oom_control")
    return files


def _upwards(mount: str, path: str, name: str) -> list[str]:
    """The file ``name`` of the group and of each group above it (inside a container only the top may be visible)."""
    parts = [part for part in path.split("/") if part]
    return ["/".join((mount, *parts[:count], name)) for count in range(len(parts), -1, -1)]
