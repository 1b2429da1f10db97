"""An exported program as a stamp: what a package cannot tell of itself. Metadata and hashes, no values of tensors."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from aotidoctor.model import records
from aotidoctor.model.errors import AotidoctorError, CannotExamineError
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.program_archive import ProgramArchive
from aotidoctor.model.stamp import SCHEMA, SampleTensor, Stamp
from aotidoctor.readers.inputs import read_inputs
from aotidoctor.readers.package.archive import zip_items
from aotidoctor.readers.package.digests import digest
from aotidoctor.readers.package.programs import read_program_archive
from aotidoctor.version import __version__

# Metadata beyond 1 MiB are not read; what is left out first is what is least missed.
MOST_CHARS = 512 << 10
_MOST_SAMPLE_BYTES = 1 << 30


def read_program(path: str) -> ProgramArchive:
    """The exported program at ``path``. Raises CannotExamineError."""
    archive = read_program_archive(path)
    if isinstance(archive, str):
        raise CannotExamineError(f"{path}: {archive}")
    return archive


def make_stamp(
    archive: ProgramArchive, *, torch: str | None = None, compiler: str | None = None, python: str | None = None
) -> Stamp:
    """The stamp of what is compiled from ``archive``; ``torch`` and ``compiler`` are those that compile it."""
    left_out: list[str] = []
    stored = {**(archive.constants or {}), **(archive.weights or {})}
    if archive.weights is None and archive.weights_pickle is not None:
        left_out.append("hashes of the weights: they are in a pickle")
    hashes = {name: digest(payload.stored) for name, payload in stored.items()}
    return Stamp(
        schema=SCHEMA,
        tool=__version__,
        program=_program_hash(archive),
        facts=archive.facts,
        torch=torch or archive.facts.torch_version,
        compiler=compiler,
        python=python,
        weights={name: found for name, found in hashes.items() if found is not None},
        sample=tuple(_sample(archive, left_out)),
        left_out=tuple(left_out),
    )


def stamp_text(stamp: Stamp) -> str:
    """The stamp as it is written: JSON, as short as it has to be."""
    text = _text(stamp)
    if len(text) > MOST_CHARS:
        left_out = (*stamp.left_out, "constants and operators of the program: there are too many")
        facts = replace(stamp.facts, constants=(), ops={})
        text = _text(replace(stamp, facts=facts, left_out=left_out))
    if len(text) > MOST_CHARS:
        text = _text(replace(stamp, facts=facts, weights={}, left_out=(*left_out, "hashes of the weights")))
    return text


def _text(stamp: Stamp) -> str:
    return json.dumps(records.to_json(stamp), separators=(",", ":"), sort_keys=True)


def _program_hash(archive: ProgramArchive) -> str:
    """Of the graph without what changes from one export of it to the next: paths and stack traces."""
    plain = json.dumps(_without_metadata(archive.document.get("graph_module")), sort_keys=True)
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()


def _without_metadata(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _without_metadata(item) for key, item in value.items() if key != "metadata"}
    return [_without_metadata(item) for item in value] if isinstance(value, list) else value


def _sample(archive: ProgramArchive, left_out: list[str]) -> Iterator[SampleTensor]:
    """The tensors of the sample inputs in the archive, by their metadata."""
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
