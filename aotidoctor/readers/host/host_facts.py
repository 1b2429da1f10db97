"""Read every fact about this machine that a check may need, without torch, ctypes or a child process."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace

from aotidoctor.model.artifact import Artifact
from aotidoctor.model.case import Host, TmpdirState
from aotidoctor.readers.host.environment import (
    allowed_variables,
    distribution,
    find_toolkit,
    find_tools,
    find_torch,
    glibc_version,
    in_container,
    read_tmpdir,
    relevant_packages,
)
from aotidoctor.readers.host.hardware import Cpu, default_threads, read_cpu, read_driver, read_gpus, read_memory
from aotidoctor.readers.host.linkage import executable_stack, predict_linkage


def read_host(*, artifact: Artifact | None, environ: Mapping[str, str], survey: bool = False) -> Host:
    """Facts about this machine for the worker, which runs in this interpreter.

    With ``artifact``, the libraries and symbols that its shared objects need are looked up too, and the temporary
    folder is compared with its unpacked size. With ``survey``, the libraries that packages usually need are looked up:
    a profile of this machine is then of use for any package. Raises nothing for a machine that lacks something.
    """
    if not sys.platform.startswith("linux"):
        return _read_other_host(environ)
    name = platform.uname()
    cpu = read_cpu()
    memory = read_memory()
    torch = find_torch(sys.path)
    linkage = predict_linkage(artifact, torch.folder if torch.build else None, environ, survey=survey)
    glibc = glibc_version()
    stack, why = executable_stack(glibc, environ)
    return Host(
        system=name.system,
        machine=name.machine,
        python=".".join(str(part) for part in sys.version_info[:3]),
        cpu_model=cpu.model,
        cpu_flags=cpu.flags,
        cores=cpu.cores,
        threads=default_threads(cpu, name.machine, environ),
        memory_available=memory.available,
        memory_total=memory.total,
        address_space_limit=memory.address_space_limit,
        torch=torch.build,
        torch_problem=torch.problem,
        gpus=read_gpus(),
        cuda_driver=read_driver(linkage.libcuda),
        libraries=linkage.libraries,
        missing_symbols=linkage.missing,
        symbols_checked=linkage.checked,
        symbols_problem=linkage.problem,
        missing_folders=_missing_folders(artifact, environ) if artifact is not None else None,
        glibc=glibc,
        openmp_runtimes=linkage.openmp,
        tmpdir=read_tmpdir(
            environ,
            needed_bytes=artifact.unpacked_size if artifact is not None else 0,
            torch=torch.build.version if torch.build is not None else None,
        ),
        tools={**find_tools(environ), **find_toolkit(environ, sys.path)},
        environment=allowed_variables(environ),
        in_container=in_container(environ),
        distribution=distribution(),
        # As ``platform.platform()`` has it, which would read the interpreter's file for it.
        platform=f"{name.system}-{name.release}-{name.machine}" + (f"-with-glibc{glibc}" if glibc else ""),
        packages=relevant_packages(sys.path),
        abi_versions=linkage.abi_versions,
        executable_stack=stack,
        executable_stack_why=why,
    )


def _missing_folders(artifact: Artifact, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Include and library folders of a compile that do not exist, in the order in which they are named.

    Left out where the compiler's own variables lead it to what such a folder of another PyTorch held.
    """

    def leads_to(file: str, *variables: str) -> bool:
        paths = [path for name in variables for path in environ.get(name, "").split(os.pathsep) if path]
        return any(os.access(f"{path}/{file}", os.F_OK) for path in paths)

    headers = leads_to("torch/csrc/inductor", "CPATH", "CPLUS_INCLUDE_PATH")
    libraries = leads_to("libtorch.so", "LIBRARY_PATH")
    named = dict.fromkeys(folder for model in artifact.models for folder in model.build_folders)
    lacking = (folder for folder in named if not (headers if folder.endswith("include") else libraries))
    # No error for strange names, as of pathlib.
    return tuple(folder for folder in lacking if not os.path.isdir(folder))  # noqa: PTH112


# Other systems than Linux. What they do not tell is unstated.
# PF_*_INSTRUCTIONS_AVAILABLE of IsProcessorFeaturePresent, with the names of /proc/cpuinfo.
_WINDOWS_FLAGS = {36: "ssse3", 37: "sse4_1", 38: "sse4_2", 39: "avx", 40: "avx2", 41: "avx512f"}
# What sysctl of an Intel Mac calls otherwise.
_MAC_FLAGS = {"avx1.0": "avx", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}
# Every Mac with an Apple chip has these.
_APPLE_FLAGS = frozenset(("fp", "asimd", "fphp", "asimdhp", "atomics", "crc32"))


def _read_other_host(environ: Mapping[str, str]) -> Host:
    """What the standard interfaces of Windows or macOS give; of WebAssembly only the interpreter is stated."""
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
    import shutil
    import tempfile

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
