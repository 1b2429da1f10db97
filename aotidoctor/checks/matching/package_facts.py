"""Answer questions about the package from metadata, the contract or the wrapper, whichever is there.

Also compare the symbols that a shared object needs with a machine that is only known from its profile: versions instead
of files.
"""

from __future__ import annotations

import re
from dataclasses import replace

from aotidoctor.model.artifact import ArtifactKind, Metadata, ModelEntry, SharedObject, SymbolRef
from aotidoctor.model.case import Case, Host, MissingSymbol
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.evidence import FileSource, list_names
from aotidoctor.readers.releases.torch_releases import is_shim, release_of, release_text, shim_table

# Facts of the package.
DEVICE_KEY = "AOTI_DEVICE_KEY"
DEVICES = ("cpu", "cuda", "xpu", "mps")
GPU_DEVICES = ("cuda", "xpu", "mps")
NOT_STATED = " does not state "
NO_PACKAGE = "the file could not be opened as a package"
NO_MODEL = "no model could be read from the package"

_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}


def is_package(case: Case) -> bool:
    """Whether members of an AOTInductor package could be listed (zip or directory)."""
    return case.artifact.kind in {ArtifactKind.AOTI_PACKAGE, ArtifactKind.AOTI_DIRECTORY}


def at_member(case: Case, member: str | None) -> FileSource:
    """The place of a member, or the package's own path without one."""
    return FileSource(file=member or case.artifact.path)


def loader_metadata(model: ModelEntry) -> tuple[str | None, Metadata | None]:
    """``(member name the C++ loader opens, its metadata or None)``.

    The loader takes the name of the last .cpp of the model, or of the .so when no .cpp is there, and puts
    ``_metadata.json`` in place of the suffix (measured: damage in the other metadata file goes unnoticed).
    """
    names = [member.name for member in model.members if not member.name.endswith("/")]
    stems = [name for name in names if name.endswith(".cpp")] or [name for name in names if name.endswith(".so")]
    if not stems:
        return None, next(iter(model.metadata), None)
    wanted = stems[-1].rpartition(".")[0] + "_metadata.json"
    return wanted, next((entry for entry in model.metadata if entry.member == wanted), None)


def metadata_value(case: Case, key: str) -> tuple[str | None, str | None]:
    """``(value, member)`` of a metadata key, from the file that the loader reads if it has the key."""
    if case.model is None:
        return None, None
    _, first = loader_metadata(case.model)
    for entry in (*((first,) if first else ()), *case.model.metadata):
        if key in entry.values:
            return entry.values[key], entry.member
    return None, None


def at_call(case: Case, call: KernelCall) -> FileSource:
    """The line of the wrapper that makes the call."""
    return replace(at_member(case, case.contract.member if case.contract else None), line=call.line)


def device_of(case: Case) -> str | None:
    """Device type the package was compiled for (``cpu``, ``cuda``...), None if it is not recorded."""
    value, _ = metadata_value(case, DEVICE_KEY)
    if value:
        return value
    return case.needs.device_type


def device_source(case: Case) -> FileSource:
    """The place that states the device type."""
    return at_member(case, metadata_value(case, DEVICE_KEY)[1])


def machine_name(name: str) -> str:
    """One spelling per machine: ``x86_64`` for AMD64 and x64, ``aarch64`` for arm64."""
    return _MACHINES.get(name.lower(), name.lower())


def has_code_for(item: SharedObject, machine: str) -> bool:
    """Whether the object runs on this machine; a universal one runs on several. True where its header does not say."""
    machines = item.machines or ((item.machine,) if item.machine else ())
    return not machines or machine_name(machine) in map(machine_name, machines)


def main_object(case: Case) -> SharedObject | None:
    """The shared object that would be loaded: the last wrapper by its name, else the last one; None without any."""
    objects = case.model.shared_objects if case.model else ()
    wrappers = [item for item in objects if item.member.endswith(".wrapper.so")]
    return next(reversed(wrappers or objects), None)


def unstated_reason(case: Case, *facts: str) -> str | None:
    """Why the check cannot be made: the host's profile does not state one of ``facts``. None if it states all."""
    missing = [name for name in facts if name in case.host.unstated]
    return f"the profile {case.host.profile}{NOT_STATED}{list_names(missing)}" if missing else None


# Linking against a profile of a host. The libraries that come with each fact of a profile.
_OF_TORCH = frozenset(("libtorch.so", "libtorch_cpu.so", "libc10.so"))
_OF_CUDA_TORCH = ("libtorch_cuda.so", "libc10_cuda.so")
_OF_C = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux")
# Windows and macOS themselves; Python on Windows brings the runtime of the compiler, torch's wheel the other libraries.
_OF_WINDOWS = frozenset((
    "kernel32.dll", "user32.dll", "advapi32.dll", "ntdll.dll", "msvcrt.dll", "ucrtbase.dll", "ws2_32.dll",
    "shell32.dll", "ole32.dll", "bcrypt.dll", "dbghelp.dll", "psapi.dll", "vcruntime140.dll", "vcruntime140_1.dll",
))  # fmt: skip
_OF_TORCH_ELSEWHERE = frozenset((
    "torch.dll", "torch_cpu.dll", "c10.dll", "libiomp5md.dll", "msvcp140.dll", "libtorch.dylib", "libtorch_cpu.dylib",
    "libc10.dylib", "libomp.dylib",
))  # fmt: skip
# The debug runtime of Visual Studio, and MinGW's libraries, are only where somebody put them.
_NOT_ON_WINDOWS = re.compile(r"(?:vcruntime140|msvcp140|ucrtbase)d\.dll|lib(?:gcc_s_\w+|stdc\+\+|winpthread)-\d+\.dll")
_OF_FAMILY = {"libstdc++.so.6": "GLIBCXX", "libgcc_s.so.1": "GCC", "libgomp.so.1": "GOMP"}
# C++ symbols of libtorch come and go without notice.
_OF_LIBTORCH = ("_ZN2at", "_ZNK2at", "_ZN3c10", "_ZNK3c10", "_ZN5torch", "_ZNK5torch", "_ZTIN3c10", "_ZTVN3c10")


def has_library(host: Host, name: str) -> bool | None:
    """Whether the machine has the library; None if its profile does not say."""
    if name in host.libraries:
        return host.libraries[name] is not None
    if host.system in ("Windows", "Darwin"):
        return _has_elsewhere(host, name)
    if name in _OF_TORCH:
        return True if host.torch is not None else None
    if name in _OF_CUDA_TORCH:
        return None if host.torch is None or "torch.cuda" in host.unstated else host.torch.cuda is not None
    if name == "libcuda.so.1":
        return None if "cuda_driver" in host.unstated else host.cuda_driver is not None
    if name.startswith(_OF_C):
        return True if host.glibc else None
    return True if _OF_FAMILY.get(name) in host.abi_versions else None


def _has_elsewhere(host: Host, name: str) -> bool | None:
    base = name.rpartition("/")[2].lower()
    if base in _OF_TORCH_ELSEWHERE:
        return True if host.torch is not None else None
    if host.system == "Darwin":
        return True if name.startswith(("/usr/lib/", "/System/Library/")) else None
    if _NOT_ON_WINDOWS.fullmatch(base):
        return False
    return True if base in _OF_WINDOWS or base.startswith("api-ms-win-") else None


def link_to_profile(host: Host, compiled: SharedObject) -> tuple[tuple[MissingSymbol, ...], str]:
    """Undefined symbols that the machine certainly lacks by its profile, and what the profile does not tell."""
    wanted = [ref for ref in compiled.undefined if not ref.weak]
    versioned = [ref for ref in wanted if ref.version is not None]
    shims = [ref.name for ref in wanted if ref.version is None and is_shim(ref.name)]
    native = [ref.name for ref in wanted if ref.version is None and ref.name.startswith(_OF_LIBTORCH)]
    missing, unknown = _shims(host, shims)
    missing += [
        MissingSymbol(name=ref.name, version=ref.version, wanted_from=ref.library)
        for ref in versioned
        if _provides(host, ref) is False
    ]
    families = sorted({_split(ref.version or "")[0] for ref in versioned if _provides(host, ref) is None})
    if families:
        unknown.append(f"the profile {host.profile}{NOT_STATED}{', '.join(f'versions of {one}' for one in families)}")
    if native:
        unknown.append(f"C++ symbols of libtorch ({native[0]} and {len(native) - 1} more) differ from build to build")
    return tuple(missing), "; ".join(unknown)


def _shims(host: Host, names: list[str]) -> tuple[list[MissingSymbol], list[str]]:
    if not names:
        return [], []
    release = release_of(host.torch.version) if host.torch is not None else None
    if release is None:
        return [], [f"the profile {host.profile}{NOT_STATED}torch"]
    table = shim_table()
    if release > table.releases[-1]:
        newest = release_text(table.releases[-1])
        words = f"torch {release_text(release)} is newer than {newest}, the newest release that this version knows"
        return [], [words]
    answers = {name: table.has(name, release) for name in names}
    strange = [name for name, known in answers.items() if known is None]
    unknown = [f"no known release of torch has {strange[0]}"] if strange else []
    return [MissingSymbol(name=name) for name, known in answers.items() if known is False], unknown


def _provides(host: Host, ref: SymbolRef) -> bool | None:
    family, number = _split(ref.version or "")
    have = _split(f"{family}_{host.abi_versions.get(family, '?')}")[1]
    return None if have is None or number is None else number <= have


def _split(version: str) -> tuple[str, tuple[int, ...] | None]:
    """``("GLIBCXX", (3, 4, 30))`` of ``GLIBCXX_3.4.30``."""
    family, _, number = version.rpartition("_")
    parts = number.split(".")
    return family or version, tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None
