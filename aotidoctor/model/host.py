"""What this machine offers. Gathered without importing torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.record import record


@record
class TorchBuild:
    """The torch that the worker would import.

    ``cuda``, ``hip`` and ``xpu`` are the toolkit versions it was built for, None where it was not. ``debug`` tells
    a debug build, None where its version.py does not say.
    """

    version: str
    path: str
    cuda: str | None = None
    cxx11_abi: bool | None = None
    hip: str | None = None
    xpu: str | None = None
    debug: bool | None = None


@record
class Gpu:
    """One GPU; ``compute_capability`` like ``90``, memory in bytes."""

    index: int
    name: str
    compute_capability: str | None = None
    memory_total: int | None = None


@record
class MissingSymbol:
    """A symbol that no library of this host provides. ``wanted_from`` is the library the package names for it."""

    name: str
    version: str | None = None
    wanted_from: str | None = None


@record
class TmpdirState:
    """The temporary directory a load would use. ``problem`` is None when it can be used.

    ``fixed`` tells that the loader goes there whatever TMPDIR says: torch before 2.13.
    """

    path: str
    exists: bool = True
    writable: bool = True
    noexec: bool = False
    free_bytes: int | None = None
    problem: str | None = None
    fixed: bool = False

    def problem_with(self, needed: int) -> str | None:
        """What keeps a package that takes ``needed`` bytes unpacked from it; None where nothing does."""
        if self.problem is not None or self.free_bytes is None or self.free_bytes >= needed:
            return self.problem
        return f"has {self.free_bytes} bytes free, the unpacked package takes {needed}"


@record
class Host:
    """What this machine offers.

    ``cpu_flags`` are those of /proc/cpuinfo. ``threads`` is what torch would use by default (cores, unless the
    environment says otherwise). ``libraries`` maps a NEEDED name to the file it resolves to (None when not found).
    ``missing_symbols`` are undefined symbols of the package that nothing here provides; ``symbols_checked`` is how many
    were looked up (0 and ``symbols_problem`` set when it could not be done). ``tools`` maps tool name to path, the
    header ``cuda.h`` among them. ``missing_folders`` are those that the package hands to a compiler and that do not
    exist here, None where nobody looked.
    ``environment`` holds allow-listed variables only. ``distribution`` is the name that /etc/os-release gives
    (``Debian GNU/Linux 12``), ``platform`` what Python's ``platform.platform()`` prints, and ``packages`` are the
    installed distributions that PyTorch's collect_env lists.

    ``abi_versions`` maps a family of symbol versions to the newest one here (``GLIBCXX`` to ``3.4.30``).
    ``executable_stack`` says whether a library that asks for an executable stack is loaded here, None where that is
    not known; ``executable_stack_why`` is the reason.

    ``profile`` is None for this machine, else the name of the profile that describes another one. ``unstated`` are the
    fields that the profile says nothing about: their values here are defaults, not facts.
    """

    system: str
    machine: str
    python: str
    cpu_model: str | None = None
    cpu_flags: frozenset[str] = frozenset()
    cores: int = 1
    threads: int = 1
    memory_available: int | None = None
    memory_total: int | None = None
    address_space_limit: int | None = None
    torch: TorchBuild | None = None
    torch_problem: str | None = None
    gpus: tuple[Gpu, ...] = ()
    cuda_driver: str | None = None
    libraries: Mapping[str, str | None] = field(default_factory=dict)
    missing_symbols: tuple[MissingSymbol, ...] = ()
    symbols_checked: int = 0
    symbols_problem: str | None = None
    missing_folders: tuple[str, ...] | None = None
    glibc: str | None = None
    openmp_runtimes: tuple[str, ...] = ()
    tmpdir: TmpdirState | None = None
    tools: Mapping[str, str | None] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    in_container: bool | None = None
    distribution: str | None = None
    platform: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    abi_versions: Mapping[str, str] = field(default_factory=dict)
    executable_stack: bool | None = None
    executable_stack_why: str | None = None
    profile: str | None = None
    unstated: frozenset[str] = frozenset()
