"""Facts about a watched program that belong to no run: which command, which libtorch, which packages, what core."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from aotidoctor.commands.watch.packages import UsedPackage
from aotidoctor.model.host import TorchBuild
from aotidoctor.model.watched import Watched
from aotidoctor.readers.host.torch_build import find_torch


def extra_of(watched: Watched, packages: Sequence[UsedPackage]) -> dict[str, str]:
    """Names and texts for the report."""
    torch = libtorch_of(watched)
    libraries = ", ".join(watched.seen.libraries)
    found = {
        "program": shlex.join(watched.argv),
        "packages": "; ".join(f"{used.path} ({used.how})" for used in packages) or "none seen",
        "libtorch": f"{torch.version} ({torch.path})" if torch is not None else libraries or "none seen",
        "processes": str(watched.seen.processes),
    }
    return {**found, "core": watched.core} if watched.core is not None else found


def libtorch_of(watched: Watched) -> TorchBuild | None:
    """The torch whose libraries the program had mapped, None where that does not show."""
    for library in watched.seen.libraries:
        folder = Path(library).parent.parent
        # torch/lib/libtorch_cpu.so of an installed torch; a bare libtorch has no version.py.
        if folder.name == "torch" and (found := find_torch([str(folder.parent)]).build) is not None:
            return found
    return None
