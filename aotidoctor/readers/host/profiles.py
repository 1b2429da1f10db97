"""Read and write profiles of hosts: what another machine offers, from a file or built in.

A profile is JSON: ``{"schema": "aotidoctor.host/1", "name": ..., "source": ..., "host": {...}}``, written by
``aotidoctor env --save``; the output of ``aotidoctor env --json`` is accepted, too. Fields that ``host`` does not
have are unknown, and a check that needs one reports that instead of guessing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path

from aotidoctor.model import record_json
from aotidoctor.model.artifact import Artifact
from aotidoctor.model.case import Host, TorchBuild
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.record import JsonObject, as_object, to_json
from aotidoctor.readers.host.linkage import executable_stack
from aotidoctor.readers.package.blob import read_document
from aotidoctor.readers.releases.torch_releases import release_of

SCHEMA = "aotidoctor.host/1"
HERE = "here"
"""The name of this machine in place of a profile, where no file is called so."""

_REPORT = "aotidoctor.report/1"
_NOT_LOOKED_UP = "symbols were not resolved on that machine"
# What is a fact of one package or one moment, not of the machine.
_PASSING = ("missing_symbols", "symbols_checked", "symbols_problem", "missing_folders", "profile", "unstated")


def read_profile(name: str) -> Host:
    """The host of a profile file, or of the built-in profile called ``name``; ``a+b`` joins built-in ones.

    Raises:
        UsageError: there is neither a file nor a built-in profile of that name.
        CannotExamineError: the file cannot be read, or is no profile of a host.
    """
    if os.path.exists(name):  # noqa: PTH110 - no ValueError for strange names
        return _host(name, read_document(name, "the profile of a host", SCHEMA, _REPORT))
    parts = [part for part in name.split("+") if part in built_in_profiles()]
    if parts and "+".join(parts) == name:
        # What all of them state; of two statements the later one, but a torch or a level of CPUs of Linux stands for
        # that of the system that another part names.
        hosts = [as_object(built_in_profiles()[part].get("host", {})) for part in parts]
        stated = {key: value for host in hosts for key, value in host.items()}
        elsewhere = next((host for host in hosts if host["system"] != "Linux"), {})
        return _host(name, {"host": stated | {key: elsewhere[key] for key in ("system", "machine") if elsewhere}})
    raise UsageError(
        f"--host: there is no file or built-in profile {name!r}; built-in: {', '.join(built_in_profiles())}"
    )


@lru_cache(maxsize=1)
def built_in_profiles() -> Mapping[str, JsonObject]:
    """The built-in profiles, by name."""
    found: dict[str, JsonObject] = json.loads(Path(__file__).with_name("profiles.json").read_text(encoding="utf-8"))
    return found


def is_profile(path: str) -> bool:
    """Whether the file is one of ``aotidoctor env --save``."""
    try:
        return read_document(path, "the profile of a host", SCHEMA, _REPORT).get("schema") == SCHEMA
    except CannotExamineError:
        return False


def profile_document(host: Host, name: str) -> JsonObject:
    """The profile of ``host``, to be written as JSON."""
    stated = {key: item for key, item in as_object(to_json(host)).items() if key not in _PASSING}
    return {"schema": SCHEMA, "name": name, "source": "aotidoctor env --save", "host": stated}


def with_torch(host: Host, version: str) -> Host:
    """``host`` with another torch: ``2.14``, ``2.14.1``, ``2.14+cu128`` or ``2.14+cpu``.

    Raises:
        UsageError: that is no version of torch.
    """
    release = release_of(version)
    if release is None:
        raise UsageError(f"--torch: observed {version!r}, expected a release such as 2.14 or 2.8.0+cu128")
    local = version.partition("+")[2]
    digits = local.removeprefix("cu")
    cuda = f"{digits[:-1]}.{digits[-1]}" if local.startswith("cu") and digits.isdecimal() and len(digits) > 2 else None
    unstated = host.unstated - {"torch", "torch.cuda"} | (frozenset() if local else {"torch.cuda"})
    libraries = {name: path for name, path in host.libraries.items() if not name.startswith(("libtorch", "libc10"))}
    return replace(
        host,
        torch=TorchBuild(version=version, path="", cuda=cuda, hip=local if local.startswith("rocm") else None),
        torch_problem=None,
        libraries=libraries,
        missing_symbols=(),
        symbols_checked=0,
        symbols_problem=_NOT_LOOKED_UP,
        missing_folders=None,
        profile=f"{host.profile or HERE} with torch {version}",
        unstated=unstated,
    )


def for_artifact(host: Host, artifact: Artifact) -> Host:
    """``host`` with its temporary folder compared with the unpacked size of ``artifact``."""
    state = host.tmpdir
    if state is None:
        return host
    return replace(host, tmpdir=replace(state, problem=state.problem_with(artifact.unpacked_size)))


def _host(name: str, document: JsonObject) -> Host:
    value = document.get("host")
    if not isinstance(value, dict):
        raise CannotExamineError(f"{name}: at $.host: observed nothing, expected the record of a host")
    given = {key: item for key, item in value.items() if key not in _PASSING}
    missing = {item.name for item in fields(Host)} - given.keys() - set(_PASSING)
    try:
        host = record_json.from_json(Host, {"python": "", **given})
    except record_json.RecordError as error:
        raise CannotExamineError(f"{name}: at $.host: observed {error}, expected the record of a host") from error
    # A profile that was sent has a name of its own for the machine it was made on.
    host = replace(host, profile=str(document.get("name") or Path(name).name)[:80], symbols_problem=_NOT_LOOKED_UP)
    # What follows from other fields.
    if "executable_stack" in missing and host.glibc is not None:
        permitted, why = executable_stack(host.glibc, host.environment, root="/nonexistent")
        host = replace(host, executable_stack=permitted, executable_stack_why=why)
        missing -= {"executable_stack"}
    if "abi_versions" in missing and host.glibc is not None:
        host = replace(host, abi_versions={"GLIBC": host.glibc})
    return replace(host, unstated=frozenset(missing))
