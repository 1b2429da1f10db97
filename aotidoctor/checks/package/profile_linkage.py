"""Would a machine that is only known from its profile provide what a shared object needs? Versions instead of files."""

from __future__ import annotations

from aotidoctor.checks.package.facts import UNSTATED
from aotidoctor.model.artifact import SharedObject, SymbolRef
from aotidoctor.model.host import Host, MissingSymbol
from aotidoctor.model.record import record
from aotidoctor.readers.releases.shims import is_shim, release_of, release_text, shim_table

# Which libraries come with which fact of a profile.
_OF_TORCH = frozenset(("libtorch.so", "libtorch_cpu.so", "libc10.so"))
_OF_CUDA_TORCH = ("libtorch_cuda.so", "libc10_cuda.so")
_OF_C = ("libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "ld-linux")
_OF_FAMILY = {"libstdc++.so.6": "GLIBCXX", "libgcc_s.so.1": "GCC", "libgomp.so.1": "GOMP"}
# C++ symbols of libtorch come and go without notice.
_OF_LIBTORCH = ("_ZN2at", "_ZNK2at", "_ZN3c10", "_ZNK3c10", "_ZN5torch", "_ZNK5torch", "_ZTIN3c10", "_ZTVN3c10")


@record
class ProfileLinkage:
    """``missing`` are symbols that the machine lacks for sure; ``unknown`` says what cannot be told, or nothing."""

    missing: tuple[MissingSymbol, ...] = ()
    unknown: str = ""


def has_library(host: Host, name: str) -> bool | None:
    """Whether the machine has the library; None where its profile does not tell."""
    if name in host.libraries:
        return host.libraries[name] is not None
    if name in _OF_TORCH:
        return True if host.torch is not None else None
    if name in _OF_CUDA_TORCH:
        return None if host.torch is None or "torch.cuda" in host.unstated else host.torch.cuda is not None
    if name == "libcuda.so.1":
        return None if "cuda_driver" in host.unstated else host.cuda_driver is not None
    if name.startswith(_OF_C):
        return True if host.glibc else None
    return True if _OF_FAMILY.get(name) in host.abi_versions else None


def link_to_profile(host: Host, compiled: SharedObject) -> ProfileLinkage:
    """Every undefined symbol against the versions that the profile states."""
    wanted = [ref for ref in compiled.undefined if not ref.weak]
    versioned = [ref for ref in wanted if ref.version is not None]
    shims = [ref.name for ref in wanted if ref.version is None and is_shim(ref.name)]
    native = [ref.name for ref in wanted if ref.version is None and ref.name.startswith(_OF_LIBTORCH)]
    missing, unknown = _shims(host, shims)
    missing += [_missing(ref) for ref in versioned if _provides(host, ref) is False]
    families = sorted({_split(ref.version or "")[0] for ref in versioned if _provides(host, ref) is None})
    if families:
        unknown.append(f"the profile {host.profile}{UNSTATED}{', '.join(f'versions of {one}' for one in families)}")
    if native:
        unknown.append(f"C++ symbols of libtorch ({native[0]} and {len(native) - 1} more) differ from build to build")
    return ProfileLinkage(missing=tuple(missing), unknown="; ".join(unknown))


def _shims(host: Host, names: list[str]) -> tuple[list[MissingSymbol], list[str]]:
    if not names:
        return [], []
    release = release_of(host.torch.version) if host.torch is not None else None
    if release is None:
        return [], [f"the profile {host.profile}{UNSTATED}torch"]
    table = shim_table()
    if release > table.releases[-1]:
        newest = release_text(table.releases[-1])
        words = f"torch {release_text(release)} is newer than {newest}, the newest release that this version knows"
        return [], [words]
    answers = {name: table.has(name, release) for name in names}
    strange = [name for name, known in answers.items() if known is None]
    unknown = [f"no known release of torch has {strange[0]}"] if strange else []
    return [MissingSymbol(name=name) for name, known in answers.items() if known is False], unknown


def _missing(ref: SymbolRef) -> MissingSymbol:
    return MissingSymbol(name=ref.name, version=ref.version, wanted_from=ref.library)


def _provides(host: Host, ref: SymbolRef) -> bool | None:
    family, number = _split(ref.version or "")
    have = _split(f"{family}_{host.abi_versions.get(family, '?')}")[1]
    return None if have is None or number is None else number <= have


def _split(version: str) -> tuple[str, tuple[int, ...] | None]:
    """``("GLIBCXX", (3, 4, 30))`` of ``GLIBCXX_3.4.30``."""
    family, _, number = version.rpartition("_")
    parts = number.split(".")
    return family or version, tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None
