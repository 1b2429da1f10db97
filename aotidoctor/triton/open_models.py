"""Open the models of a repository as a server would: folders, config with its defaults, packages, host.

Nothing is executed. The core fills platform, backend and file name (also under strict configuration), picks versions by
the policy, and turns KIND_AUTO into KIND_GPU where it finds a GPU. The defaults depend on the release.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aotidoctor.checks import gpu_arch_mismatch, isa_mismatch, platform_mismatch
from aotidoctor.model.case import Case, Host
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import NotChecked, describe_failure
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import TOP, ConfigMessage, ModelConfig, Position, written_text
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.triage.open_case import select_model
from aotidoctor.triton import config_schema, text_format
from aotidoctor.triton.config_schema import TextFormatError
from aotidoctor.triton.init_library import read_hook
from aotidoctor.triton.serving import PLATFORM, Release, ServedModel, ServedVersion, Settled
from aotidoctor.triton.text_format import numbers_of, read_fields

# Folders of a repository, and the files of each version.
CONFIG = "config.pbtxt"
_FILES_LISTED = 2000
# A config is a page of text; what is larger is another file under its name.
_LARGEST_CONFIG = 16 << 20


@record
class ModelFolder:
    """One model's folder.

    ``folders`` are its folders by name, with the relative paths of the files below each; ``files`` are the files
    beside them except the config. ``text`` is that of the config, None without one; bytes that are not UTF-8 are lone
    surrogates in it.
    """

    name: str
    path: str
    text: str | None
    folders: tuple[tuple[str, tuple[str, ...]], ...] = ()
    files: tuple[str, ...] = ()

    @property
    def config_path(self) -> str | None:
        """Path of the config, None where there is none."""
        return None if self.text is None else posixpath.join(self.path, CONFIG)


def read_repository(path: str) -> tuple[ModelFolder, ...]:
    """Read the models below ``path``, or the one that it is. Raises CannotExamineError."""
    place = Path(path)
    if place.name == CONFIG and place.is_file():
        place = place.parent
    if not place.is_dir():
        what = f"not a folder: {path}; expected that of a model, with {CONFIG} and 1/model.pt2, or of several models"
        raise CannotExamineError(what if place.exists() else f"no such folder: {path}")
    try:
        if (place / CONFIG).exists() or any(folder.name.isdecimal() for folder in _folders(place)):
            return (_read(place),)
        models = tuple(_read(folder) for folder in _folders(place))
    except OSError as error:
        raise CannotExamineError(f"{error.filename or path}: {error.strerror}") from error
    if not models:
        raise CannotExamineError(f"no model in {path}: neither {CONFIG} nor a folder")
    return models


def _folders(place: Path) -> tuple[Path, ...]:
    found = (entry for entry in place.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    return tuple(sorted(found, key=lambda entry: entry.name))


def _read(place: Path) -> ModelFolder:
    config = place / CONFIG
    if config.exists() and (not config.is_file() or config.stat().st_size > _LARGEST_CONFIG):
        raise CannotExamineError(f"{config} is not a text file of the size of a config")
    return ModelFolder(
        # The server takes the name from the folder, however the user wrote the path.
        name=Path(os.path.realpath(place)).name if place.name in ("", "..") else place.name,
        path=str(place),
        text=config.read_bytes().decode("utf-8", "surrogateescape") if config.exists() else None,
        folders=tuple((folder.name, tuple(_files(folder))) for folder in _folders(place)),
        files=tuple(sorted(item.name for item in place.iterdir() if item.is_file() and item.name != CONFIG)),
    )


def _files(folder: Path) -> Iterator[str]:
    listed = 0
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            listed += 1
            if listed > _FILES_LISTED:
                return
            yield str(Path(here, name).relative_to(folder))


# The config of a model, or the reason why the server takes none.
@record
class ConfigReading:
    """Result of reading a config.

    ``config`` is None where the text does not parse, for the reason in ``problem``. ``unchecked`` is the reason why the
    text was not checked against Triton's own schema.
    """

    config: ModelConfig | None
    problem: str | None = None
    at: Position | None = None
    unchecked: str | None = None


def read_config(text: str | None) -> ConfigReading:
    """Read a config as the server does; without one it goes by the files alone."""
    if text is None:
        return ConfigReading(config=ModelConfig(tree=ConfigMessage(fields=(), at=TOP)))
    try:
        own = read_fields(text_format.parse_config(text), text)
    except TextFormatError as error:
        return _reject(text, error)
    official = config_schema.parse_with_protobuf(text)
    if official.accepted is False:
        # Known to happen with numbers only, where the server's C++ parser takes more than protobuf's Python parser.
        return ConfigReading(config=own, unchecked=f"protobuf's Python parser refuses it: {official.problem}")
    return ConfigReading(config=own, unchecked=official.problem if official.accepted is None else None)


def _reject(text: str, error: TextFormatError) -> ConfigReading:
    """Refuse the text, unless its only fault is a field that Triton's schema has and our table of types has not."""
    refused = ConfigReading(config=None, problem=f"{error.at.line}:{error.at.column}: {error}", at=error.at)
    try:
        lenient = read_fields(text_format.parse_config(text, lenient=True), text)
    except TextFormatError:
        return refused
    official = config_schema.parse_with_protobuf(text)
    if official.accepted:
        return ConfigReading(config=lenient)
    return replace(refused, unchecked=official.problem if official.accepted is None else None)


def is_for_aotinductor(config: ModelConfig | None, folder: ModelFolder) -> bool:
    """Whether a model is for the AOTInductor loader: by its platform, its file name, or a file ``*.pt2``."""
    names = [name for _, files in folder.folders for name in files]
    if config is not None:
        platform = written_text(config.platform).lower()
        if PLATFORM in platform or "aoti" in platform or "inductor" in platform:
            return True
        names.append(written_text(config.default_model_filename))
    return any(name.endswith(".pt2") for name in names)


# Defaults, by release.
BACKEND, LIBTORCH = "pytorch", "pytorch_libtorch"
DEFAULT_FILE, LIBTORCH_FILE = "model.pt2", "model.pt"


def server_defaults(config: ModelConfig, folder: ModelFolder, release: Release, host: Host) -> Settled:
    """Fill in the server's defaults."""
    platform, platform_from = _platform(config, folder, release)
    backend = written_text(config.backend) or (BACKEND if platform in (PLATFORM, LIBTORCH) else "")
    # For a platform that has to be corrected first, the default that will hold then.
    default = LIBTORCH_FILE if platform == PLATFORM and release.before("26.04") else DEFAULT_FILE
    automatic = "KIND_GPU" if host.gpus else "KIND_CPU"
    kinds = [group.effective_kind for group in config.instance_groups] or ["KIND_AUTO"]
    return Settled(
        backend=backend,
        platform=platform,
        filename=written_text(config.default_model_filename) or default,
        platform_from=platform_from,
        kinds=tuple(automatic if kind == "KIND_AUTO" else kind for kind in kinds),
        policy=_policy(config),
    )


def _platform(config: ModelConfig, folder: ModelFolder, release: Release) -> tuple[str, str]:
    if platform := written_text(config.platform):
        return platform, "config"
    if backend := written_text(config.backend):
        return (LIBTORCH, "core") if backend == BACKEND else ("", "core")
    if name := written_text(config.default_model_filename):
        return (LIBTORCH, "core") if name in (DEFAULT_FILE, LIBTORCH_FILE) else ("", "core")
    # From the files of the first folder, in the order of names as text.
    files = folder.folders[0][1] if folder.folders else ()
    if LIBTORCH_FILE in files:
        return LIBTORCH, "detected"
    if DEFAULT_FILE in files:
        return (PLATFORM if release.since("26.04") else LIBTORCH), "detected"
    return "", "core"


def _policy(config: ModelConfig) -> str:
    policy = config.tree.message("version_policy")
    if policy is None:
        return "latest:1"
    if policy.first("all") is not None:
        return "all"
    specific = policy.message("specific")
    if specific is not None:
        return "specific:" + ",".join(str(item.value) for item in numbers_of(specific, "versions"))
    latest = policy.message("latest")
    count = numbers_of(latest, "num_versions") if latest is not None else ()
    # Without a choice it is one version; a choice of "latest" without a number is none.
    return f"latest:{count[-1].value if count else 0 if latest is not None else 1}"


def pick_versions(policy: str, numbers: Sequence[int]) -> frozenset[int]:
    """Versions that a policy picks from ``numbers``."""
    kind, _, rest = policy.partition(":")
    if kind == "all":
        return frozenset(numbers)
    if kind == "specific":
        return frozenset(numbers) & {int(text) for text in rest.split(",") if text}
    return frozenset(sorted(numbers, reverse=True)[: int(rest)])


# Models. Checks that compare a package with this host, as far as they matter to a server on such a host.
_HOST_CHECKS = (platform_mismatch.CHECK, isa_mismatch.CHECK, gpu_arch_mismatch.CHECK)
# Beside those that are served, versions are read to compare them: this many of the newest.
_COMPARED = 3
_VERSION = re.compile(r"([+-]?[0-9]+)")


@record
class OpenedModels:
    """Models for AOTInductor, and what was not examined."""

    models: tuple[ServedModel, ...]
    host: Host
    not_checked: tuple[NotChecked, ...] = ()


def open_models(path: str, release: Release, environ: Mapping[str, str]) -> OpenedModels:
    """Read a repository, or the one model that ``path`` is. Raises CannotExamineError."""
    folders = read_repository(path)
    host = read_host(artifact=None, environ=environ)
    if environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        host = replace(host, gpus=())
    readings = {folder.name: read_config(folder.text) for folder in folders}
    configs = {name: reading.config for name, reading in readings.items() if reading.config is not None}
    models: list[ServedModel] = []
    not_checked: list[NotChecked] = []
    for folder in folders:
        reading = readings[folder.name]
        if len(folders) > 1 and reading.problem is None and not is_for_aotinductor(reading.config, folder):
            given = reading.config.platform if reading.config is not None else None
            platform = given.value if given is not None else "no platform"
            not_checked.append(
                NotChecked(code="TRITON", name=folder.name, reason=f"not a model for torch_aoti: {platform}, no .pt2")
            )
            continue
        config = reading.config
        settled = server_defaults(config, folder, release, host) if config is not None else None
        unnumbered = [(name, files) for name, files in folder.folders if _number(name) is None]
        model = ServedModel(
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
            ignored=tuple(
                name
                for name, files in unnumbered
                if any(map(str.isdigit, name)) and any(item.endswith((".pt2", ".pt")) for item in files)
            ),
            loose=(*folder.files, *(f"{name}/{item}" for name, files in unnumbered for item in files)),
        )
        others = {name: config for name, config in configs.items() if name != folder.name}
        hook = read_hook(model.config, environ) if model.config is not None else None
        models.append(replace(model, siblings=others, hook=hook))
        if reading.unchecked is not None:
            reason = f"not checked against Triton's own schema: {reading.unchecked}"
            not_checked.append(NotChecked(code="TRITON-R1", name=f"{folder.name} schema", reason=reason))
    return OpenedModels(models=tuple(models), host=host, not_checked=tuple(not_checked))


def _number(name: str) -> int | None:
    """Version number that the server derives from a folder's name; it ignores what follows the digits."""
    found = _VERSION.match(name)
    return int(found[1]) if found is not None and (len(name) == 1 or name[0] != "0") else None


def _versions(folder: ModelFolder, config: ModelConfig, settled: Settled, host: Host) -> tuple[ServedVersion, ...]:
    named = sorted(folder.folders, key=lambda item: item[0].isdecimal())
    files = {number: items for name, items in named if (number := _number(name)) is not None}
    chosen = pick_versions(settled.policy, sorted(files))
    read = chosen | frozenset(sorted(files)[-_COMPARED:])
    filename = settled.filename
    if "KIND_GPU" in settled.kinds and host.gpus and (capability := host.gpus[0].compute_capability):
        # An instance on a GPU may have a file of its own for its compute capability.
        filename = config.cc_model_filenames.get(f"{capability[:-1]}.{capability[-1]}", filename)
    made = []
    for number in sorted(files):
        directory = posixpath.join(folder.path, str(number))
        # As the server does: a name that begins with a slash is one below the folder.
        package = f"{directory}/{filename}"
        version = ServedVersion(
            number=number, directory=directory, package=package, served=number in chosen, files=files[number]
        )
        made.append(_open_version(version, host) if number in read else version)
    return tuple(made)


def _open_version(version: ServedVersion, host: Host) -> ServedVersion:
    if not Path(version.package).exists():
        return version
    artifact = read_artifact(version.package)
    chosen = select_model(artifact, None)
    contract, problem = None, None
    if chosen is None:
        problem = artifact.problem or "the package has no model to read a call spec of"
    else:
        try:
            contract = read_contract(artifact, chosen)
        except Exception:  # noqa: BLE001 - the rest of the model is still worth judging
            problem = describe_failure()
    case = Case(artifact=artifact, host=host, model=chosen, contract=contract)
    results = [check.run(case) for check in _HOST_CHECKS]
    return replace(
        version,
        artifact=artifact,
        entry=artifact.model("model"),
        contract=contract,
        problem=problem,
        host_findings=tuple(item for found in results if not isinstance(found, NotChecked) for item in found),
    )
