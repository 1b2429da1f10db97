"""Stamp a package that is there already, or one that is about to be compiled."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.commands.stamp.make import make_stamp, read_program, stamp_text
from aotidoctor.model.artifact import Artifact, ArtifactKind, ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.errors import CannotExamineError, UsageError, examining
from aotidoctor.model.record import record
from aotidoctor.model.stamp import KEY, Stamp
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.package import damage, read_artifact, read_damage
from aotidoctor.readers.package.metadata import SUFFIX
from aotidoctor.readers.package.rewrite import copy_with_member, read_member
from aotidoctor.readers.package.stamp import read_stamp
from aotidoctor.readers.provenance.compare import compare
from aotidoctor.readers.releases.built_by import built_by
from aotidoctor.readers.releases.shims import release_of

OPTION = "aot_inductor.metadata"


@record
class Stamped:
    """``member`` is the file of the package that holds the stamp now; ``doubts`` say what speaks against it."""

    package: str
    exported: str
    output: str
    member: str
    program: str
    torch: str | None
    hashed_weights: int
    doubts: tuple[str, ...]


def stamp_package(package: str, exported: str, output: str, *, model_name: str | None = None) -> Stamped:
    """Write a copy of ``package`` that carries the stamp of ``exported``.

    Raises:
        UsageError: the copy would replace one of the two.
        CannotExamineError: one of them cannot be read, the package was compiled from another program, or the copy
            cannot be written.
    """
    if os.path.realpath(output) in (os.path.realpath(package), os.path.realpath(exported)):
        raise UsageError("neither the package nor the program is changed: give -o another name")
    artifact = read_artifact(package)
    for path, damaged in ((package, damage(artifact.bad_crc)), (exported, read_damage(exported))):
        if damaged is not None:
            raise CannotExamineError(f"{path} {damaged}")
    model = _model(artifact, model_name)
    archive = read_program(exported)
    contract = read_contract(artifact, model)
    if contract is not None:
        decisive = compare(contract, archive.facts).decisive
        if decisive:
            first = decisive[0]
            raise CannotExamineError(
                f"{package} was not compiled from {exported}: {first.subject}: {first.package}, not {first.program}"
            )
    stamp, doubts = _with_release(make_stamp(archive), artifact, model)
    member, data = _metadata(package, model, stamp_text(stamp))
    with examining(output):
        copy_with_member(package, output, member, data)
    return Stamped(
        package=package,
        exported=exported,
        output=output,
        member=member,
        program=stamp.program,
        torch=stamp.torch,
        hashed_weights=len(stamp.weights),
        doubts=(*doubts, *_doubts(output, model.name)),
    )


def stamp(exported_program: object, inductor_configs: Mapping[str, object] | None = None) -> dict[str, object]:
    """The options for ``aoti_compile_and_package`` that make the package carry a stamp.

        configs = aotidoctor.stamp(exported_program, {"max_autotune": True})
        torch._inductor.aoti_compile_and_package(exported_program, package_path="m.pt2", inductor_configs=configs)

    The program is saved once into a temporary folder, with its weights, to be read as any other program is.

    Raises:
        CannotExamineError: it cannot be saved or read.
    """
    # Only who compiles needs it, and has torch.
    from aotidoctor.worker.save_program import compiler_version, save_program, torch_version  # noqa: PLC0415

    configs = dict(inductor_configs or {})
    given = configs.get(OPTION)
    with tempfile.TemporaryDirectory(prefix="aotidoctor-") as room:
        path = Path(room) / "exported.pt2"
        try:
            save_program(exported_program, path)
        except Exception as error:
            raise CannotExamineError(f"the program cannot be saved: {type(error).__name__}: {error}") from error
        made = make_stamp(
            read_program(str(path)),
            torch=torch_version(),
            compiler=compiler_version(),
            python=platform.python_version(),
        )
    configs[OPTION] = {**(given if isinstance(given, dict) else {}), KEY: stamp_text(made)}
    return configs


def _model(artifact: Artifact, name: str | None) -> ModelEntry:
    if artifact.kind is not ArtifactKind.AOTI_PACKAGE:
        raise CannotExamineError(
            f"{artifact.path}: {artifact.problem or f'it is not a package but {artifact.kind.value}'}"
        )
    found = artifact.model(name or "model") or (artifact.models[0] if len(artifact.models) == 1 else None)
    if found is None:
        known = ", ".join(model.name for model in artifact.models[:8]) or "none"
        raise CannotExamineError(f"{artifact.path}: no model called {name or 'model'}; there is {known}")
    return found


def _with_release(made: Stamp, artifact: Artifact, model: ModelEntry) -> tuple[Stamp, tuple[str, ...]]:
    """Without the release of the program where another one compiled the package."""
    from aotidoctor.checks.package.facts import main_object  # noqa: PLC0415
    from aotidoctor.readers.host import read_host  # noqa: PLC0415

    host = read_host(artifact=None, environ={})
    built = built_by(model, main_object(Case(artifact=artifact, host=host, model=model)), stamped=False)
    release = release_of(made.torch) if made.torch is not None else None
    outside = release is not None and (
        (built.least is not None and release < built.least) or (built.before is not None and release >= built.before)
    )
    if not outside:
        return made, ()
    doubt = f"the program was exported with torch {made.torch}, and the package was compiled with a different release"
    return replace(made, torch=None), (doubt,)


def _metadata(package: str, model: ModelEntry, text: str) -> tuple[str, bytes]:
    """The metadata that the loader reads, with the stamp."""
    names = [member.name for member in model.members]
    stems = [name.rpartition(".")[0] for name in names if name.endswith(".cpp")]
    wanted = [f"{stem}{SUFFIX}" for stem in reversed(stems)] + [name for name in names if name.endswith(SUFFIX)]
    member = next((name for name in wanted if name in names), None)
    if member is None:
        raise CannotExamineError(f"{package}: model {model.name} has no metadata")
    try:
        values = json.loads(read_member(package, member))
    except ValueError as error:
        raise CannotExamineError(f"{package}: {member} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise CannotExamineError(f"{package}: {member} is not a JSON object")
    return member, json.dumps({**values, KEY: text}).encode()


def _doubts(output: str, name: str) -> tuple[str, ...]:
    """What the finished copy says against its stamp."""
    artifact = read_artifact(output)
    model = artifact.model(name)
    seen = read_stamp(artifact, model, read_contract(artifact, model)) if model is not None else None
    if seen is None or seen.stamp is None:
        raise CannotExamineError(f"{output}: the stamp cannot be read back: {seen and seen.problem}")
    weights = (f"the weights of the package differ from those of the program: {', '.join(seen.differing[:5])}",)
    return (*(weights if seen.differing else ()), *((seen.unread,) if seen.unread else ()))
