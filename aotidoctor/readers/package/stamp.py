"""The stamp in the metadata of a model, and whether its constants are the stamped ones. Nothing raises for content."""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.model import records
from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.contract import Contract
from aotidoctor.model.json_types import as_object
from aotidoctor.model.stamp import SCHEMA, Stamp, StampSeen
from aotidoctor.readers.package.constants import read_constants
from aotidoctor.readers.package.digests import digest, total
from aotidoctor.readers.package.text import JsonError, parse_json

# More bytes of constants are not hashed by a command that only reads.
MOST_BYTES = 64 << 20


def read_stamp(artifact: Artifact, model: ModelEntry, contract: Contract | None) -> StampSeen | None:
    """The stamp of ``model``; None where it carries none."""
    found = next(((one.member, one.stamp) for one in model.metadata if one.stamp is not None), None)
    if found is None:
        return None
    member, text = found
    stamp = parse_stamp(text)
    if isinstance(stamp, str):
        return StampSeen(member=member, problem=stamp)
    return _beside(StampSeen(member=member, stamp=stamp), stamp, artifact, model, contract)


def parse_stamp(text: str) -> Stamp | str:
    """The record; a text that says why there is none."""
    try:
        document = as_object(parse_json(text.encode("utf-8", "replace")))
    except JsonError as error:
        return f"not JSON: {error}"
    if document.get("schema") != SCHEMA:
        return f"observed schema {str(document.get('schema'))[:40]!r}, expected {SCHEMA!r}"
    try:
        return records.from_json(Stamp, document)
    except records.RecordError as error:
        return str(error)


def _beside(
    seen: StampSeen, stamp: Stamp, artifact: Artifact, model: ModelEntry, contract: Contract | None
) -> StampSeen:
    """``seen`` with what the package's own constants are."""
    if not stamp.weights or contract is None:
        return seen
    stored = read_constants(artifact, model, contract.constants, contract.weights)
    known = {name: tensor for name, tensor in stored.items() if name in stamp.weights}
    size = total(known.values())
    if size > MOST_BYTES:
        return replace(
            seen, unread=f"{size >> 20} MiB of constants: more than {MOST_BYTES >> 20} MiB are not hashed here"
        )
    digests = {name: digest(tensor) for name, tensor in known.items()}
    silent = [name for name, found in digests.items() if found is None]
    differing = tuple(name for name, found in digests.items() if found not in (None, stamp.weights[name]))
    return replace(
        seen,
        equal=len(digests) - len(silent) - len(differing),
        differing=differing,
        unread=f"the bytes of {len(silent)} constants cannot be compared with the stamp" if silent else None,
    )
