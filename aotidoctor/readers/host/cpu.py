"""The processor: model, flags, usable cores, and the thread count that torch would start with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.readers.host.proc import text_of_file


@record
class Cpu:
    """``cores`` are the logical CPUs this process may use; ``physical`` the distinct cores among them."""

    model: str | None
    flags: frozenset[str]
    cores: int
    physical: int


def read_cpu(root: str = "/") -> Cpu:
    """Facts from /proc/cpuinfo and /sys below ``root``; what is not there is left out."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    block = _first_block(Path(root, "proc/cpuinfo"))
    flags = block.get("flags") or block.get("Features") or ""
    return Cpu(
        model=block.get("model name"),
        flags=frozenset(flags.split()),
        cores=len(usable),
        physical=_physical_cores(Path(root, "sys/devices/system/cpu"), usable),
    )


def default_threads(cpu: Cpu, machine: str, environ: Mapping[str, str]) -> int:
    """What ``torch.get_num_threads()`` gives at start.

    Measured with torch built on MKL (x86): MKL_NUM_THREADS wins over OMP_NUM_THREADS, more than the physical cores is
    cut down unless MKL_DYNAMIC is off, and OMP_THREAD_LIMIT has no say.
    """
    asked = _first_number(environ.get("MKL_NUM_THREADS")) or _first_number(environ.get("OMP_NUM_THREADS"))
    if machine not in ("x86_64", "AMD64"):
        return asked or cpu.cores
    if asked is None:
        return cpu.physical
    dynamic = environ.get("MKL_DYNAMIC", "true").lower() not in ("false", "0", "no", "f")
    return min(asked, cpu.physical) if dynamic else asked


def _first_number(text: str | None) -> int | None:
    # OMP_NUM_THREADS may list one number per nesting level.
    first = (text or "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None


def _first_block(path: Path) -> dict[str, str]:
    # One CPU's block is enough; the whole file is slow to produce on a machine with hundreds of CPUs.
    found: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, colon, value = line.partition(":")
                if not colon:
                    break
                found[key.strip()] = value.strip()
    except OSError:
        pass
    return found


def _physical_cores(folder: Path, usable: list[int]) -> int:
    siblings = [text_of_file(folder / f"cpu{cpu}/topology/thread_siblings_list") for cpu in usable]
    return len(set(siblings)) or 1 if all(siblings) else len(usable)
