"""Read the facts of a Windows or macOS host that its standard interfaces give; what they do not give is unstated.

WebAssembly is no host of packages at all: there, only the interpreter is stated.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace

from aotidoctor.model.case import Host, TmpdirState
from aotidoctor.readers.host.environment import allowed_variables, find_tools, find_torch, relevant_packages
from aotidoctor.readers.host.hardware import Cpu, default_threads

# PF_*_INSTRUCTIONS_AVAILABLE of IsProcessorFeaturePresent, with the names of /proc/cpuinfo.
_WINDOWS_FLAGS = {36: "ssse3", 37: "sse4_1", 38: "sse4_2", 39: "avx", 40: "avx2", 41: "avx512f"}
# What sysctl of an Intel Mac calls otherwise.
_MAC_FLAGS = {"avx1.0": "avx", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}
# Every Mac with an Apple chip has these.
_APPLE_FLAGS = frozenset(("fp", "asimd", "fphp", "asimdhp", "atomics", "crc32"))


def read_other_host(environ: Mapping[str, str]) -> Host:
    """Facts about this machine where it does not run Linux. Raises nothing for a machine that lacks something."""
    system, machine = platform.system(), platform.machine()
    host = Host(system=system, machine=machine, python=platform.python_version())
    stated = {"system", "machine", "python"}
    if sys.platform != "emscripten":
        torch, cores = find_torch(sys.path), os.cpu_count() or 1
        flags, total, available = _hardware(system, machine)
        host = replace(
            host,
            cpu_model=platform.processor() or None,
            cpu_flags=flags,
            cores=cores,
            threads=default_threads(Cpu(model=None, flags=flags, cores=cores, physical=cores), machine, environ),
            memory_total=total,
            memory_available=available,
            torch=torch.build,
            torch_problem=torch.problem,
            tmpdir=_temporary_folder(),
            tools=find_tools(environ),
            environment=allowed_variables(environ),
            platform=platform.platform(),
            packages=relevant_packages(sys.path),
        )
        stated |= {"cpu_model", "cores", "threads", "torch", "tmpdir", "tools", "environment", "platform", "packages"}
        stated |= {"cpu_flags"} if flags else set()
        stated |= {"memory_total", "memory_available"} if total is not None else set()
    return replace(host, unstated=frozenset(item.name for item in fields(Host)) - stated - {"profile", "unstated"})


def _temporary_folder() -> TmpdirState:
    path = tempfile.gettempdir()
    try:
        free = shutil.disk_usage(path).free
    except OSError as error:
        return TmpdirState(path=path, problem=f"cannot be examined: {error.strerror}")
    writable = os.access(path, os.W_OK)
    return TmpdirState(path=path, writable=writable, free_bytes=free, problem=None if writable else "is not writable")


def _hardware(system: str, machine: str) -> tuple[frozenset[str], int | None, int | None]:
    """``(flags, memory, free memory)`` as far as the system tells; flags as /proc/cpuinfo spells them."""
    with suppress(Exception):  # a foreign library: whatever it does, the facts are missing
        if system == "Windows":
            return _from_kernel32()
        if system == "Darwin":
            flags = _APPLE_FLAGS if machine == "arm64" else _intel_flags()
            size = _from_sysctl("hw.memsize")
            return flags, int.from_bytes(size, sys.byteorder) if size else None, None
    return frozenset(), None, None


def _from_kernel32() -> tuple[frozenset[str], int | None, int | None]:
    import ctypes

    kernel = getattr(ctypes, "WinDLL")("kernel32")  # noqa: B009 - not on this system
    # MEMORYSTATUSEX: two numbers of four bytes, then seven of eight; the total is the first of them.
    status = (ctypes.c_uint64 * 8)()
    ctypes.memmove(status, ctypes.byref(ctypes.c_uint32(ctypes.sizeof(status))), 4)
    known = bool(kernel.GlobalMemoryStatusEx(ctypes.byref(status)))
    flags = frozenset(name for number, name in _WINDOWS_FLAGS.items() if kernel.IsProcessorFeaturePresent(number))
    return flags, status[1] if known else None, status[2] if known else None


def _intel_flags() -> frozenset[str]:
    texts = (_from_sysctl(f"machdep.cpu.{name}") for name in ("features", "leaf7_features"))
    names = b" ".join(text.rstrip(b"\0") for text in texts).decode("ascii", "replace").lower().split()
    return frozenset(_MAC_FLAGS.get(name, name) for name in names)


def _from_sysctl(name: str) -> bytes:
    import ctypes

    size = ctypes.c_size_t(4096)
    buffer = ctypes.create_string_buffer(size.value)
    failed = ctypes.CDLL(None).sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0)
    return b"" if failed else buffer.raw[: size.value]
