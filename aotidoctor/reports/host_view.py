"""What a host offers, as labelled lines."""

from __future__ import annotations

from aotidoctor.model.host import Gpu, Host
from aotidoctor.model.phrases import listed, plural
from aotidoctor.reports.text import size

_VECTOR = ("amx", "asimd", "avx", "f16c", "fma", "sse4", "sve", "vnni")


# What a line rests on: a profile that does not state it has no such line.
_FACTS = {
    "python": {"python"},
    "torch": {"torch"},
    "CPU": {"cpu_model", "cores"},
    "memory": {"memory_total"},
    "GPUs": {"gpus"},
    "CUDA driver": {"cuda_driver"},
    "missing symbols": {"libraries"},
    "vector units": {"cpu_flags"},
    "executable stack": {"executable_stack"},
}


def rows(host: Host, *, whole: bool) -> tuple[tuple[str, str], ...]:
    """Label and text of what is known; ``whole`` adds what seldom decides a case."""
    known = _all_rows(host, whole=whole)
    return tuple(row for row in known if row[1] and not _FACTS.get(row[0], set()) & host.unstated)


def _all_rows(host: Host, *, whole: bool) -> tuple[tuple[str, str], ...]:
    always = (
        ("profile", host.profile or ""),
        ("not stated", ", ".join(sorted(host.unstated))),
        ("system", f"{host.system} {host.machine}{' (container)' if host.in_container else ''}"),
        ("python", host.python),
        ("torch", _torch(host)),
        ("CPU", f"{host.cpu_model or 'unknown'}, {host.cores} cores, {host.threads} threads"),
        ("memory", _memory(host)),
        ("GPUs", ", ".join(_gpu(gpu) for gpu in host.gpus) or "none"),
        ("CUDA driver", host.cuda_driver or ""),
        ("missing libraries", ", ".join(name for name, path in host.libraries.items() if path is None)),
        ("missing symbols", _symbols(host)),
        ("temporary folder", _tmpdir(host)),
    )
    further = (
        ("vector units", ", ".join(sorted(flag for flag in host.cpu_flags if flag.startswith(_VECTOR)))),
        ("glibc", host.glibc or ""),
        ("OpenMP runtimes", ", ".join(host.openmp_runtimes)),
        ("tools", ", ".join(f"{name} {path or 'absent'}" for name, path in host.tools.items())),
        ("address space", size(host.address_space_limit) if host.address_space_limit else ""),
        ("executable stack", _stack(host)),
    )
    return always + (further if whole else ())


def _stack(host: Host) -> str:
    if host.executable_stack or not host.executable_stack_why:
        return ""
    known = "refused" if host.executable_stack is False else "not known"
    return f"{known}: {host.executable_stack_why}"


def summary(host: Host) -> str:
    """System, torch and GPUs on one line; of a profile, what it is called."""
    if host.profile is not None:
        return f"{host.profile}: {host.system} {host.machine}, a profile that leaves out {len(host.unstated)} facts"
    gpus = plural(len(host.gpus), "GPU") if host.gpus else "no GPU"
    return f"{host.system} {host.machine}, torch {_torch(host)}, {gpus}"


def _torch(host: Host) -> str:
    if host.torch is None:
        return f"not usable: {host.torch_problem}" if host.torch_problem else "not installed"
    return f"{host.torch.version} ({f'CUDA {host.torch.cuda}' if host.torch.cuda else 'CPU build'})"


def _memory(host: Host) -> str:
    known = (("available", host.memory_available), ("in all", host.memory_total))
    return ", ".join(f"{size(count)} {word}" for word, count in known if count is not None)


def _gpu(gpu: Gpu) -> str:
    capability = f" (sm_{gpu.compute_capability})" if gpu.compute_capability else ""
    memory = f" {size(gpu.memory_total)}" if gpu.memory_total else ""
    return f"{gpu.index}: {gpu.name}{capability}{memory}"


def _symbols(host: Host) -> str:
    if host.symbols_problem is not None:
        return f"not looked up: {host.symbols_problem}"
    return listed([symbol.name for symbol in host.missing_symbols], 3)


def _tmpdir(host: Host) -> str:
    found = host.tmpdir
    if found is None:
        return ""
    free = f", {size(found.free_bytes)} free" if found.free_bytes is not None else ""
    return f"{found.path}{free}" + (f", {found.problem}" if found.problem else "")
