"""Read processor, memory and NVIDIA GPUs from the files of the kernel.

Of the processor: model, flags, usable cores, and the thread count that torch would start with. Of memory, in bytes:
what the machine has, what the control group allows, what the address-space limit leaves. GPUs and driver come from
/proc and the name of libcuda: no nvidia-smi, no CUDA call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.model.case import Gpu
from aotidoctor.model.record import record


def text_of_file(path: Path) -> str:
    """The whole file; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
    path = Path(root, "proc/cpuinfo")
    # One CPU's block is enough; the whole file is slow to produce on a machine with hundreds of CPUs.
    block: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, colon, value = line.partition(":")
                if not colon:
                    break
                block[key.strip()] = value.strip()
    except OSError:
        pass
    flags = block.get("flags") or block.get("Features") or ""
    folder = Path(root, "sys/devices/system/cpu")
    siblings = [text_of_file(folder / f"cpu{cpu}/topology/thread_siblings_list") for cpu in usable]
    return Cpu(
        model=block.get("model name"),
        flags=frozenset(flags.split()),
        cores=len(usable),
        physical=len(set(siblings)) or 1 if all(siblings) else len(usable),
    )


def default_threads(cpu: Cpu, machine: str, environ: Mapping[str, str]) -> int:
    """The result of ``torch.get_num_threads()`` at start.

    Measured with torch built on MKL (x86): MKL_NUM_THREADS wins over OMP_NUM_THREADS, more than the physical cores is
    cut down unless MKL_DYNAMIC is off, and OMP_THREAD_LIMIT has no say.
    """
    threads = _first_number(environ.get("MKL_NUM_THREADS")) or _first_number(environ.get("OMP_NUM_THREADS"))
    if machine not in ("x86_64", "AMD64"):
        return threads or cpu.cores
    if threads is None:
        return cpu.physical
    dynamic = environ.get("MKL_DYNAMIC", "true").lower() not in ("false", "0", "no", "f")
    return min(threads, cpu.physical) if dynamic else threads


def _first_number(text: str | None) -> int | None:
    # OMP_NUM_THREADS may list one number per nesting level.
    first = (text or "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None


# Memory. Version 1 control groups print "no limit" as the largest multiple of a page.
_UNLIMITED = 1 << 60


@record
class HostMemory:
    """``available`` and ``total`` respect the control group; None where nothing could be read."""

    available: int | None
    total: int | None
    address_space_limit: int | None


def read_memory(root: str = "/") -> HostMemory:
    """Facts from /proc/meminfo, the control group and RLIMIT_AS."""
    path = Path(root, "proc/meminfo")
    info: dict[str, int] = {}
    for line in text_of_file(path).splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()[:1]
        if number and number[0].isdecimal():
            info[name] = int(number[0]) * 1024
    # Not at the top: the module is loaded where there is none, too.
    import resource

    limit, used = _control_group(Path(root))
    soft, _hard = resource.getrlimit(resource.RLIMIT_AS)
    free = None if limit is None else max(limit - used, 0)
    return HostMemory(
        available=_least(info.get("MemAvailable"), free),
        total=_least(info.get("MemTotal"), limit),
        address_space_limit=None if soft == resource.RLIM_INFINITY else soft,
    )


def _least(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return min(known) if known else None


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


# GPUs.
_DRIVER = r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)"
_LIBCUDA = r"libcuda\.so\.(\d{3,}\.\d+(?:\.\d+)?)$"

# Marketing names to compute capability, most specific first; a name that is not here leaves it unknown. Plain strings:
# most hosts have no GPU, and compiling all this would cost every start milliseconds.
_CAPABILITIES = (
    (r"\b(B300|GB300)\b", "103"),
    (r"\b(B100|B200|GB200)\b", "100"),
    (r"\bRTX (PRO \d+ Blackwell|50\d0)|RTX PRO", "120"),
    (r"\b(H100|H200|H800|H20|GH200)\b", "90"),
    (r"\b(L4|L40S?|L20)\b|RTX 40\d0|RTX (2000|4000|4500|5000|6000) Ada", "89"),
    (r"\bOrin\b", "87"),
    (r"\b(A2|A10G?|A16|A40)\b|RTX 30\d0|RTX A\d000", "86"),
    (r"\b(A30|A100|A800)\b", "80"),
    (r"\bT4G?\b|RTX 20\d0|GTX 16\d0|Quadro RTX|TITAN RTX", "75"),
    (r"\bXavier\b", "72"),
    (r"\bV100S?\b|TITAN V\b|GV100", "70"),
    (r"\b(P4|P40)\b|GTX 10\d0|TITAN Xp?\b", "61"),
    (r"\bP100\b|GP100", "60"),
)


def read_gpus(root: str = "/") -> tuple[Gpu, ...]:
    """One ``Gpu`` per folder of /proc/driver/nvidia/gpus, in bus order, as CUDA_DEVICE_ORDER=PCI_BUS_ID counts them."""
    folder = Path(root, "proc/driver/nvidia/gpus")
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return ()
    found = []
    for index, entry in enumerate(entries):
        name = "unknown"
        for line in text_of_file(entry / "information").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "Model" and value.strip():
                name = value.strip()
        found.append(Gpu(index=index, name=name, compute_capability=capability_of(name)))
    return tuple(found)


def capability_of(name: str) -> str | None:
    """Compute capability (``90``) of a GPU by its marketing name, None when the name is not known."""
    return next((capability for pattern, capability in _CAPABILITIES if re.search(pattern, name)), None)


def read_driver(libcuda: str | None, root: str = "/") -> str | None:
    """Driver version (``550.54.15``): of libcuda where its file name tells, else of the kernel module.

    The library decides which CUDA it can serve: a forward-compatibility package is newer than the kernel module.
    """
    if libcuda:
        match = re.search(_LIBCUDA, str(Path(libcuda).resolve()))
        if match:
            return match[1]
    match = re.search(_DRIVER, text_of_file(Path(root, "proc/driver/nvidia/version")))
    return match[1] if match else None
