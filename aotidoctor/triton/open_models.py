"""From a repository to its models as a server would see them: folders, config, packages, host. Executes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.checks import gpu_arch_mismatch, isa_mismatch, platform_mismatch
from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Contract
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.fault import failure
from aotidoctor.model.host import Host
from aotidoctor.model.record import record
from aotidoctor.model.serving import Release, ServedModel, ServedVersion, Settled
from aotidoctor.model.serving_config import ModelConfig
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.host import read_host
from aotidoctor.readers.package import read_artifact
from aotidoctor.triage.open_case import select_model
from aotidoctor.triton.read_hook import read_hook
from aotidoctor.triton.reading import Reading, is_meant, read_config
from aotidoctor.triton.repository import ModelFolder, read_repository
from aotidoctor.triton.server_defaults import picked, server_defaults

# The checks that compare a package with this host, as far as a server on such a host would feel it.
_HOST_CHECKS = (platform_mismatch.CHECK, isa_mismatch.CHECK, gpu_arch_mismatch.CHECK)
# Beside those that are served, versions are read to compare them: this many of the newest.
_COMPARED = 3
_VERSION = re.compile(r"([+-]?[0-9]+)")


@record
class Served:
    """The models that are meant for AOTInductor, and what was not looked at."""

    models: tuple[ServedModel, ...]
    host: Host
    not_checked: tuple[NotChecked, ...] = ()


def open_models(path: str, release: Release, environ: Mapping[str, str]) -> Served:
    """Read a repository, or the one model that ``path`` is. Raises CannotExamineError."""
    folders = read_repository(path)
    host = _seen_by_server(read_host(artifact=None, environ=environ), environ)
    readings = {folder.name: read_config(folder.text) for folder in folders}
    configs = {name: reading.config for name, reading in readings.items() if reading.config is not None}
    models: list[ServedModel] = []
    not_checked: list[NotChecked] = []
    for folder in folders:
        reading = readings[folder.name]
        if len(folders) > 1 and reading.problem is None and not is_meant(reading.config, folder):
            not_checked.append(_not_ours(folder, reading.config))
            continue
        model = _model(folder, reading, release, host)
        others = {name: config for name, config in configs.items() if name != folder.name}
        hook = read_hook(model.config, environ) if model.config is not None else None
        models.append(replace(model, siblings=others, hook=hook))
        if reading.unchecked is not None:
            reason = f"not checked against Triton's own schema: {reading.unchecked}"
            not_checked.append(NotChecked(code="TRITON-R1", name=f"{folder.name} schema", reason=reason))
    return Served(models=tuple(models), host=host, not_checked=tuple(not_checked))


def _not_ours(folder: ModelFolder, config: ModelConfig | None) -> NotChecked:
    platform = config.platform.value if config is not None and config.platform is not None else "no platform"
    return NotChecked(code="TRITON", name=folder.name, reason=f"not a model for torch_aoti: {platform}, no .pt2")


def _seen_by_server(host: Host, environ: Mapping[str, str]) -> Host:
    """Without the GPUs that the environment hides."""
    return replace(host, gpus=()) if environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1") else host


def _model(folder: ModelFolder, reading: Reading, release: Release, host: Host) -> ServedModel:
    config = reading.config
    settled = server_defaults(config, folder, release, host) if config is not None else None
    return ServedModel(
        name=folder.name,
        path=folder.path,
        release=release,
        host=host,
        text=folder.text or "",
        config_path=folder.config_path,
        config=config,
        parse_problem=reading.problem,
        parse_at=reading.at,
        settled=settled,
        versions=_versions(folder, config, settled, host) if config is not None and settled is not None else (),
        ignored=tuple(name for name, files in folder.folders if _number(name) is None and _looks_like_one(name, files)),
        loose=_loose(folder),
    )


def _number(name: str) -> int | None:
    """The version that the server takes a folder's name for: what stands behind the digits does not matter to it."""
    found = _VERSION.match(name)
    return int(found[1]) if found is not None and (len(name) == 1 or name[0] != "0") else None


def _looks_like_one(name: str, files: tuple[str, ...]) -> bool:
    """A folder that somebody meant to be served: it has a digit in its name and a model in it."""
    return any(letter.isdigit() for letter in name) and any(item.endswith((".pt2", ".pt")) for item in files)


def _loose(folder: ModelFolder) -> tuple[str, ...]:
    deeper = [f"{name}/{item}" for name, files in folder.folders if _number(name) is None for item in files]
    return (*folder.files, *deeper)


def _versions(folder: ModelFolder, config: ModelConfig, settled: Settled, host: Host) -> tuple[ServedVersion, ...]:
    named = sorted(folder.folders, key=lambda item: item[0].isdecimal())
    files = {number: items for name, items in named if (number := _number(name)) is not None}
    chosen = picked(settled.policy, sorted(files))
    read = chosen | frozenset(sorted(files)[-_COMPARED:])
    filename = _filename(config, settled, host)
    made = []
    for number in sorted(files):
        directory = os.path.join(folder.path, str(number))  # noqa: PTH118 - as the user wrote it
        package = os.path.join(directory, filename)  # noqa: PTH118
        version = ServedVersion(
            number=number, directory=directory, package=package, served=number in chosen, files=files[number]
        )
        made.append(_opened(version, host) if number in read else version)
    return tuple(made)


def _filename(config: ModelConfig, settled: Settled, host: Host) -> str:
    """An instance on a GPU may have a file of its own for its compute capability."""
    if "KIND_GPU" in settled.kinds and host.gpus and (capability := host.gpus[0].compute_capability):
        return config.cc_model_filenames.get(f"{capability[:-1]}.{capability[-1]}", settled.filename)
    return settled.filename


def _opened(version: ServedVersion, host: Host) -> ServedVersion:
    if not Path(version.package).exists():
        return version
    artifact = read_artifact(version.package)
    chosen = select_model(artifact, None)
    contract, problem = _contract(artifact, chosen)
    return replace(
        version,
        artifact=artifact,
        entry=artifact.model("model"),
        contract=contract,
        problem=problem,
        host_findings=_host_findings(artifact, chosen, contract, host),
    )


def _contract(artifact: Artifact, entry: ModelEntry | None) -> tuple[Contract | None, str | None]:
    if entry is None:
        return None, artifact.problem or "the package has no model to read a call spec of"
    try:
        return read_contract(artifact, entry), None
    except Exception:  # noqa: BLE001 - the guard around readers: the rest of the model is still worth judging
        return None, failure()


def _host_findings(
    artifact: Artifact, entry: ModelEntry | None, contract: Contract | None, host: Host
) -> tuple[Evidence, ...]:
    case = Case(artifact=artifact, host=host, model=entry, contract=contract)
    found: list[Evidence] = []
    for check in _HOST_CHECKS:
        said = check.run(case)
        found.extend(() if isinstance(said, NotChecked) else said)
    return tuple(found)
