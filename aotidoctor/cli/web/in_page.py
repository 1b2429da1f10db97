"""Examine the files that were dropped on the page. Runs in WebAssembly, where they are in one folder.

What each file is decides the command. The page shows that command too, so that it can be typed elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.errors import UsageError
from aotidoctor.model.record import JsonObject
from aotidoctor.readers.host.profiles import SCHEMA as HOST_SCHEMA
from aotidoctor.readers.package.read_package import read_artifact

ANY = ""
"""The choice "no machine": package and inputs are judged alone."""

_PACKAGES = frozenset((
    ArtifactKind.AOTI_PACKAGE, ArtifactKind.BARE_SO, ArtifactKind.EXECUTORCH_PROGRAM, ArtifactKind.TRUNCATED_ZIP,
    ArtifactKind.LFS_POINTER, ArtifactKind.ONNX, ArtifactKind.TORCHSCRIPT, ArtifactKind.ZIP, ArtifactKind.EMPTY,
))  # fmt: skip
_INPUTS = (".pt", ".pth", ".npz", ".npy", ".json", ".safetensors")
# A JSON file says what it is in its first lines.
_HEAD = 4096


@dataclass(slots=True)
class Dropped:
    """The files by what they are."""

    packages: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    served: list[str] = field(default_factory=list)


def sort_files(paths: Sequence[str]) -> tuple[Dropped, dict[str, Artifact]]:
    """What each file is, by its content and then its name."""
    found = Dropped()
    artifacts = {path: read_artifact(path, crc_limit=0) for path in paths}
    for path, artifact in artifacts.items():
        _place_of(found, path, artifact).append(path)
    return found, artifacts


def _place_of(found: Dropped, path: str, artifact: Artifact) -> list[str]:
    name = Path(path).name.lower()
    if name.endswith(".json"):
        with Path(path).open(encoding="utf-8", errors="replace") as stream:
            head = stream.read(_HEAD)
        if f'"{HOST_SCHEMA}"' in head:
            return found.hosts
        return found.reports if '"aotidoctor.report/' in head else found.inputs
    if artifact.kind is ArtifactKind.BUNDLE:
        return found.reports
    if artifact.kind is ArtifactKind.EXPORTED_PROGRAM:
        return found.programs
    if artifact.kind is ArtifactKind.EXECUTORCH_DATA:
        return found.data
    if artifact.kind in _PACKAGES and not name.endswith(_INPUTS):
        return found.packages
    if name.endswith(".pbtxt"):
        return found.served
    return found.inputs if name.endswith(_INPUTS) else found.logs


def command_of(found: Dropped) -> list[str]:
    """The words of the command for these files. Raises UsageError where they do not belong together."""
    for files, what in ((found.packages, "packages"), (found.inputs, "files of inputs"), (found.programs, "programs")):
        if len(files) > 1:
            names = ", ".join(Path(path).name for path in files)
            raise UsageError(f"these are {len(files)} {what} ({names}): drop one of them, with what belongs to it")
    if found.reports:
        return ["analyze", found.reports[0]]
    if found.served:
        return ["triton", str(Path(found.served[0]).parent)]
    package = found.packages or found.programs
    inputs = ["--inputs", found.inputs[0]] if found.inputs else []
    if found.logs:
        return ["classify", found.logs[0], *(("--package", package[0], *inputs) if package else ())]
    if package:
        program = ["--reference", found.programs[0]] if found.packages and found.programs else []
        data = [word for path in found.data for word in ("--data", path)]
        return ["check", package[0], *inputs, *program, *data]
    if found.inputs:
        name = Path(found.inputs[0]).name
        raise UsageError(f"{name} has inputs: drop the package (.pt2) that they are for, too")
    raise UsageError("drop a package (.pt2), its inputs, a log, a report or a bundle")


def _profile(artifact: Artifact, room: Path) -> str:
    """A profile that states only the system and machine that the package was compiled for."""
    objects = [item for model in artifact.models for item in model.shared_objects]
    system = {"pe": "Windows", "macho": "Darwin"}.get(objects[0].format if objects else "", "Linux")
    machine = next((item.machine for item in objects if item.machine), "x86_64")
    path = room / "any.json"
    host = {"system": system, "machine": machine}
    path.write_text(json.dumps({"schema": HOST_SCHEMA, "name": "any machine", "host": host}))
    return str(path)


def examine(folder: str, machine: str) -> str:
    """The answer to the files in ``folder`` for a machine (a built-in profile, or ``ANY``), as JSON.

    ``{"command": words to type, "status": exit status, "html": …, "markdown": …, "json": …}``, or ``{"message": …}``
    where there is nothing to examine.
    """
    # The report names files as the user does.
    os.chdir(folder)
    paths = sorted(path.name for path in Path().iterdir())
    with tempfile.TemporaryDirectory() as room:
        try:
            found, artifacts = sort_files(paths)
            words = command_of(found)
        except (UsageError, OSError) as error:
            return json.dumps({"message": str(error)})
        typed = [*words]
        if words[0] == "check":
            host = found.hosts[0] if found.hosts else machine or _profile(artifacts[words[1]], Path(room))
            words += ["--host", host]
            if found.hosts or machine:
                typed += ["--host", host]
        return json.dumps(_answer(words, typed, Path(room)))


def _answer(words: list[str], typed: list[str], room: Path) -> JsonObject:
    from aotidoctor.cli import build_app

    kinds = {"html": "html", "markdown": "md", "json": "json"}
    reports = [word for kind in kinds.values() for word in ("--report", f"{kind}:{room / kind}")]
    sys.argv = ["aotidoctor", *typed]
    stderr = io.StringIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.redirect_stderr(stderr):
        try:
            build_app()(args=[*words, *reports, "--quiet"], prog_name="aotidoctor")
            status: object = 0
        except SystemExit as ended:
            status = ended.code or 0
    shown = {name: room / kind for name, kind in kinds.items()}
    if not all(path.exists() for path in shown.values()):
        return {"message": stderr.getvalue().strip() or f"aotidoctor failed here: exit status {status}"}
    answer: JsonObject = {name: path.read_text(encoding="utf-8") for name, path in shown.items()}
    # What was dropped lies in a folder that only this page knows.
    return {**answer, "status": int(str(status)), "command": shlex.join(["aotidoctor", *typed])}
