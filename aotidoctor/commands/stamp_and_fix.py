"""Write a changed copy of a package, stamped with its origin or repaired (``aotidoctor stamp``, ``aotidoctor fix``).

A stamp holds metadata and hashes of the exported program, no values of tensors.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.artifact import (
    STAMP_KEY,
    STAMP_SCHEMA,
    Artifact,
    ArtifactKind,
    ModelEntry,
    ProgramArchive,
    SampleTensor,
    Stamp,
)
from aotidoctor.model.case import Case
from aotidoctor.model.errors import AotidoctorError, CannotExamineError, UsageError, examining
from aotidoctor.model.record import JsonValue, record, to_json
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.inputs.read_inputs import read_inputs
from aotidoctor.readers.package.constants import constant_digest, read_program_archive, read_stamp
from aotidoctor.readers.package.package_models import SUFFIX
from aotidoctor.readers.package.patched_copy import copy_patched, copy_with_member, read_member, stack_patches
from aotidoctor.readers.package.read_package import read_artifact, read_damage, zip_items
from aotidoctor.readers.package.zip_archive import describe_damage
from aotidoctor.readers.provenance.compare_program import compare_program
from aotidoctor.readers.releases.torch_releases import built_by, release_of
from aotidoctor.version import __version__

# Metadata beyond 1 MiB are not read, so the least important parts are left out first.
MOST_CHARS = 512 << 10
_MOST_SAMPLE_BYTES = 1 << 30


def read_program(path: str) -> ProgramArchive:
    """Read the exported program at ``path``. Raises CannotExamineError."""
    archive = read_program_archive(path)
    if isinstance(archive, str):
        raise CannotExamineError(f"{path}: {archive}")
    return archive


def make_stamp(
    archive: ProgramArchive, *, torch: str | None = None, compiler: str | None = None, python: str | None = None
) -> Stamp:
    """Make the stamp of a package that ``torch`` and ``compiler`` compile from ``archive``."""
    left_out: list[str] = []
    stored = {**(archive.constants or {}), **(archive.weights or {})}
    if archive.weights is None and archive.weights_pickle is not None:
        left_out.append("hashes of the weights: they are in a pickle")
    hashes = {name: constant_digest(payload.stored) for name, payload in stored.items()}
    # The graph without paths and stack traces, which change from export to export.
    plain = json.dumps(_without_metadata(archive.document.get("graph_module")), sort_keys=True)
    return Stamp(
        schema=STAMP_SCHEMA,
        tool=__version__,
        program=hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest(),
        facts=archive.facts,
        torch=torch or archive.facts.torch_version,
        compiler=compiler,
        python=python,
        weights={name: found for name, found in hashes.items() if found is not None},
        sample=tuple(_sample(archive, left_out)),
        left_out=tuple(left_out),
    )


def stamp_text(stamp: Stamp) -> str:
    """The stamp as JSON of at most ``MOST_CHARS``, if leaving out parts is enough for that."""
    text = _text(stamp)
    if len(text) > MOST_CHARS:
        left_out = (*stamp.left_out, "constants and operators of the program: there are too many")
        facts = replace(stamp.facts, constants=(), ops={})
        text = _text(replace(stamp, facts=facts, left_out=left_out))
    if len(text) > MOST_CHARS:
        text = _text(replace(stamp, facts=facts, weights={}, left_out=(*left_out, "hashes of the weights")))
    return text


def _text(stamp: Stamp) -> str:
    return json.dumps(to_json(stamp), separators=(",", ":"), sort_keys=True)


def _without_metadata(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without_metadata(item) for key, item in value.items() if key != "metadata"}
    return [_without_metadata(item) for item in value] if isinstance(value, list) else value


def _sample(archive: ProgramArchive, left_out: list[str]) -> Iterator[SampleTensor]:
    """The metadata of the sample inputs in the archive."""
    stem = archive.member.rpartition("/")[2].removesuffix(".json")
    item = next(
        (one for one in zip_items(archive.path) or [] if one.name.endswith(f"data/sample_inputs/{stem}.pt")), None
    )
    data = item.read(_MOST_SAMPLE_BYTES) if item is not None else None
    if data is None:
        left_out.append("the sample: it is not in the archive of the program")
        return
    with tempfile.TemporaryDirectory(prefix="aotidoctor-") as room:
        path = Path(room) / "sample.pt"
        path.write_bytes(data)
        try:
            tensors = read_inputs(str(path)).tensors()
        except AotidoctorError as error:
            left_out.append(f"the sample: {type(error).__name__}")
            return
    for place, one in tensors:
        yield SampleTensor(path=place, dtype=one.dtype, shape=one.shape, stride=one.stride, device=one.device_type)


# Stamps for an existing package, and for one that is about to be compiled.
OPTION = "aot_inductor.metadata"


@record
class Stamped:
    """A stamped copy. ``member`` is the file of the package with the stamp; ``doubts`` are arguments against it."""

    package: str
    exported: str
    output: str
    member: str
    program: str
    torch: str | None
    hashed_weights: int
    doubts: tuple[str, ...]


def stamp_package(package: str, exported: str, output: str, *, model_name: str | None = None) -> Stamped:
    """Write a copy of ``package`` with the stamp of ``exported``.

    Raises:
        UsageError: the copy would replace one of the two.
        CannotExamineError: one of them cannot be read, the package was compiled from another program, or the copy
            cannot be written.
    """
    if os.path.realpath(output) in (os.path.realpath(package), os.path.realpath(exported)):
        raise UsageError("neither the package nor the program is changed: give -o another name")
    artifact = read_artifact(package)
    for path, damaged in ((package, describe_damage(artifact.bad_crc)), (exported, read_damage(exported))):
        if damaged is not None:
            raise CannotExamineError(f"{path} {damaged}")
    model = _model(artifact, model_name)
    archive = read_program(exported)
    contract = read_contract(artifact, model)
    if contract is not None:
        decisive = compare_program(contract, archive.facts).decisive
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
    """The options for ``aoti_compile_and_package`` that add a stamp to the package.

        configs = aotidoctor.stamp(exported_program, {"max_autotune": True})
        torch._inductor.aoti_compile_and_package(exported_program, package_path="m.pt2", inductor_configs=configs)

    The program is saved once into a temporary folder, with its weights, to be read as any other program is.

    Raises:
        CannotExamineError: it cannot be saved or read.
    """
    # Imported only here, as it needs torch.
    from aotidoctor.worker.compile_program import compiler_version, save_program, torch_version

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
    configs[OPTION] = {**(given if isinstance(given, dict) else {}), STAMP_KEY: stamp_text(made)}
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
    """Remove the program's release of torch from the stamp if another one compiled the package."""
    from aotidoctor.checks.matching.package_facts import main_object
    from aotidoctor.readers.host.host_facts import read_host

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
    """Add the stamp to the metadata that the loader reads; the name and the bytes of the member."""
    names = [member.name for member in model.members]
    stems = [name.rpartition(".")[0] for name in names if name.endswith(".cpp")]
    possible = [f"{stem}{SUFFIX}" for stem in reversed(stems)] + [name for name in names if name.endswith(SUFFIX)]
    member = next((name for name in possible if name in names), None)
    if member is None:
        raise CannotExamineError(f"{package}: model {model.name} has no metadata")
    try:
        values = json.loads(read_member(package, member))
    except ValueError as error:
        raise CannotExamineError(f"{package}: {member} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise CannotExamineError(f"{package}: {member} is not a JSON object")
    return member, json.dumps({**values, STAMP_KEY: text}).encode()


def _doubts(output: str, name: str) -> tuple[str, ...]:
    """Differences between the finished copy and its stamp."""
    artifact = read_artifact(output)
    model = artifact.model(name)
    found = read_stamp(artifact, model, read_contract(artifact, model)) if model is not None else None
    if found is None or found.stamp is None:
        raise CannotExamineError(f"{output}: the stamp cannot be read back: {found and found.problem}")
    weights = (f"the weights of the package differ from those of the program: {', '.join(found.differing[:5])}",)
    return (*(weights if found.differing else ()), *((found.unread,) if found.unread else ()))


# Repairs, each of one fault.
EXECSTACK = "execstack"
FIXES: Mapping[str, str] = {EXECSTACK: "clears the flag that requests an executable stack"}


@record
class Fixed:
    """A repaired copy. ``changes`` list each change and its byte; empty if the copy is identical."""

    package: str
    output: str
    fix: str
    changes: tuple[str, ...]
    changed_bytes: int


def fix(name: str, package: str, output: str) -> Fixed:
    """Write a copy of ``package`` with the repair ``name``.

    Raises:
        UsageError: there is no such fix, or the copy would replace the package.
        CannotExamineError: the package cannot be read or changed, or the copy cannot be written.
    """
    if name not in FIXES:
        raise UsageError(f"there is no fix {name!r}; available: {', '.join(FIXES)}")
    if os.path.realpath(package) == os.path.realpath(output):
        raise UsageError("the package itself is not changed: give -o another name")
    patches = stack_patches(package)
    with examining(output):
        copy_patched(package, output, patches)
    return Fixed(
        package=package,
        output=output,
        fix=name,
        changes=tuple(f"{patch.what}, byte {patch.offset}" for patch in patches),
        changed_bytes=sum(len(patch.data) for patch in patches),
    )
