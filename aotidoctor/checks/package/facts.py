"""Questions about the package, answered from metadata, the contract or the wrapper, whichever is there."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model.artifact import ArtifactKind, Metadata, ModelEntry, SharedObject
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.evidence import FileSource
from aotidoctor.model.phrases import listed

DEVICE_KEY = "AOTI_DEVICE_KEY"
DEVICES = ("cpu", "cuda", "xpu", "mps")
GPU_DEVICES = ("cuda", "xpu", "mps")
UNSTATED = " does not state "
NO_PACKAGE = "the file could not be opened as a package"
NO_MODEL = "no model could be read from the package"

_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}


def is_package(case: Case) -> bool:
    """Whether members of an AOTInductor package could be listed (zip or directory)."""
    return case.artifact.kind in {ArtifactKind.AOTI_PACKAGE, ArtifactKind.AOTI_DIRECTORY}


def at_member(case: Case, member: str | None) -> FileSource:
    """The place of a member: the package's own path when there is none."""
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
    """``(value, member)`` of a metadata key, from the file the loader reads where it has the key."""
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
    """Device type the package was compiled for (``cpu``, ``cuda``...), None when nothing tells."""
    value, _ = metadata_value(case, DEVICE_KEY)
    if value:
        return value
    return case.needs.device_type


def device_source(case: Case) -> FileSource:
    """Where the device type stands."""
    return at_member(case, metadata_value(case, DEVICE_KEY)[1])


def machine_name(name: str) -> str:
    """One spelling per machine: ``x86_64`` for AMD64 and x64, ``aarch64`` for arm64."""
    return _MACHINES.get(name.lower(), name.lower())


def main_object(case: Case) -> SharedObject | None:
    """The shared object that would be loaded: the last wrapper by its name, else the last one; None without any."""
    objects = case.model.shared_objects if case.model else ()
    wrappers = [item for item in objects if item.member.endswith(".wrapper.so")]
    return next(reversed(wrappers or objects), None)


def unstated(case: Case, *facts: str) -> str | None:
    """Why nothing can be said: the profile of the host does not state one of ``facts``. None where it states all."""
    missing = [name for name in facts if name in case.host.unstated]
    return f"the profile {case.host.profile}{UNSTATED}{listed(missing)}" if missing else None
