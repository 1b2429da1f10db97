"""The host in the words of PyTorch's ``collect_env``: the same fields, names and order.

It is written from what was read of the host, without importing torch: what only a running torch or a tool could tell is
``Could not collect``, as collect_env itself puts it, and nothing is guessed.
"""

from __future__ import annotations

from aotidoctor.model.host import Host
from aotidoctor.reports.text import one_line

UNKNOWN = "Could not collect"
NO_CUDA = "No CUDA"
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_ISA = 2000


def versions(host: Host) -> str:
    """The text that ``python -m torch.utils.collect_env`` would print, as far as it is known."""
    groups = (_torch(host), _system(host), _runtime(host))
    blocks = ["\n".join(f"{label}: {_value(text)}" for label, text in group) for group in groups]
    cpu = "\n".join(f"{label + ':':<41}{one_line(text, _ISA)}" for label, text in _cpu(host))
    return "\n\n".join([*blocks, f"CPU:\n{cpu}", f"Versions of relevant libraries:\n{_packages(host)}"])


def _value(text: str | None) -> str:
    if text is None:
        return UNKNOWN
    # A text of several lines starts on a line of its own.
    return f"\n{text}\n" if "\n" in text else one_line(text, 400)


def _without(host: Host) -> str | None:
    """What is said of torch where there is none: a host that was not asked may have one."""
    return "N/A" if host.torch_problem is not None else None


def _torch(host: Host) -> tuple[tuple[str, str | None], ...]:
    build = host.torch
    if build is None:
        names = ("PyTorch version", "Is debug build", "CUDA used to build PyTorch", "ROCM used to build PyTorch")
        return tuple((name, _without(host)) for name in names)
    return (
        ("PyTorch version", build.version),
        ("Is debug build", None if build.debug is None else str(build.debug)),
        ("CUDA used to build PyTorch", "N/A" if build.hip else build.cuda or "None"),
        ("ROCM used to build PyTorch", build.hip or "N/A"),
    )


def _system(host: Host) -> tuple[tuple[str, str | None], ...]:
    named = host.distribution or (host.system.lower() if host.system else None)
    return (
        ("OS", f"{named} ({host.machine})" if named else None),
        ("GCC version", None),
        ("Clang version", None),
        ("CMake version", None),
        ("Libc version", f"glibc-{host.glibc}" if host.glibc else None),
    )


def _runtime(host: Host) -> tuple[tuple[str, str | None], ...]:
    build = host.torch
    without = build is not None and not (build.cuda or build.hip)
    bare = without and not host.gpus and host.cuda_driver is None and not host.tools.get("nvcc")
    nothing = NO_CUDA if bare else None
    hip = "N/A" if build is not None and not build.hip else _without(host) if build is None else None
    settings = {name: host.environment[name] for name in _ALLOCATOR if name in host.environment}
    return (
        ("Python version", host.python or None),
        ("Python platform", host.platform),
        ("Is CUDA available", _without(host) if build is None else "False" if without else None),
        ("CUDA runtime version", nothing),
        ("CUDA_MODULE_LOADING set to", "N/A" if without else host.environment.get("CUDA_MODULE_LOADING")),
        ("GPU models and configuration", _gpus(host) or nothing),
        ("Nvidia driver version", host.cuda_driver or nothing),
        ("cuDNN version", nothing),
        ("Is XPU available", _without(host) if build is None else "False" if build.xpu is None else None),
        ("HIP runtime version", hip),
        ("MIOpen runtime version", hip),
        ("Is XNNPACK available", None),
        ("Caching allocator config", str(settings) if settings else "N/A" if host.environment else None),
    )


def _gpus(host: Host) -> str:
    return "\n".join(f"GPU {gpu.index}: {one_line(gpu.name, 120)}" for gpu in host.gpus)


def _cpu(host: Host) -> list[tuple[str, str]]:
    """As lscpu spells it. The CPUs are those that the process may use."""
    rows = [("Architecture", host.machine), ("CPU(s)", str(host.cores))]
    rows += [("Model name", host.cpu_model)] if host.cpu_model else []
    rows += [("Flags", " ".join(sorted(host.cpu_flags)))] if host.cpu_flags else []
    return rows


def _packages(host: Host) -> str:
    pip = [f"[pip3] {one_line(name, 80)}=={one_line(version, 80)}" for name, version in host.packages.items()]
    return "\n".join([*(pip or [f"[pip3] {UNKNOWN}"]), f"[conda] {UNKNOWN}"])
