"""What the server makes of a config before the backend sees it: its defaults, by release.

The core fills platform, backend and file name (also under strict configuration), picks versions by the policy, and
turns KIND_AUTO into KIND_GPU where it sees a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.host import Host
from aotidoctor.model.serving import PLATFORM, Release, Settled
from aotidoctor.model.serving_config import ModelConfig, written
from aotidoctor.triton.repository import ModelFolder
from aotidoctor.triton.typed import numbers_of

BACKEND, LIBTORCH = "pytorch", "pytorch_libtorch"
DEFAULT_FILE, LIBTORCH_FILE = "model.pt2", "model.pt"


def server_defaults(config: ModelConfig, folder: ModelFolder, release: Release, host: Host) -> Settled:
    """The config with the server's defaults."""
    platform, platform_from = _platform(config, folder, release)
    backend = written(config.backend) or (BACKEND if platform in (PLATFORM, LIBTORCH) else "")
    return Settled(
        backend=backend,
        platform=platform,
        filename=_filename(config, platform, release),
        platform_from=platform_from,
        kinds=_kinds(config, host),
        policy=_policy(config),
    )


def _platform(config: ModelConfig, folder: ModelFolder, release: Release) -> tuple[str, str]:
    if platform := written(config.platform):
        return platform, "config"
    if backend := written(config.backend):
        return (LIBTORCH, "core") if backend == BACKEND else ("", "core")
    if name := written(config.default_model_filename):
        return (LIBTORCH, "core") if name in (DEFAULT_FILE, LIBTORCH_FILE) else ("", "core")
    return _detected(folder, release)


def _detected(folder: ModelFolder, release: Release) -> tuple[str, str]:
    """From the files of the first folder, in the order of names as text."""
    files = folder.folders[0][1] if folder.folders else ()
    if LIBTORCH_FILE in files:
        return LIBTORCH, "detected"
    if DEFAULT_FILE in files:
        return (PLATFORM if release.since("26.04") else LIBTORCH), "detected"
    return "", "core"


def _filename(config: ModelConfig, platform: str, release: Release) -> str:
    if name := written(config.default_model_filename):
        return name
    # For a platform that has to be corrected first, what will count then.
    return LIBTORCH_FILE if platform == PLATFORM and release.before("26.04") else DEFAULT_FILE


def _kinds(config: ModelConfig, host: Host) -> tuple[str, ...]:
    automatic = "KIND_GPU" if host.gpus else "KIND_CPU"
    kinds = [group.effective_kind for group in config.instance_groups] or ["KIND_AUTO"]
    return tuple(automatic if kind == "KIND_AUTO" else kind for kind in kinds)


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


def picked(policy: str, numbers: Sequence[int]) -> frozenset[int]:
    """The versions that a policy picks out of those that are there."""
    kind, _, rest = policy.partition(":")
    if kind == "all":
        return frozenset(numbers)
    if kind == "specific":
        return frozenset(numbers) & {int(text) for text in rest.split(",") if text}
    return frozenset(sorted(numbers, reverse=True)[: int(rest)])
