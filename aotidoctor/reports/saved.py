"""A JSON report that was written before, read back as it stands, and the case that it was about."""

from __future__ import annotations

import json
import stat

from aotidoctor.model import records
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.errors import CannotExamineError, examining
from aotidoctor.model.host import Host
from aotidoctor.model.json_types import JsonObject, as_integer, as_object
from aotidoctor.model.report import SCHEMA
from aotidoctor.readers.package.blob import opened_blob

# In bytes; reports are cut long before.
_LARGEST = 64 << 20


def read_saved(path: str) -> JsonObject:
    """The document. Raises CannotExamineError where the file is no report of ours."""
    try:
        with examining(path), opened_blob(path) as (blob, mode):
            if not stat.S_ISREG(mode):
                raise CannotExamineError(f"{path}: observed no regular file, expected a report of aotidoctor")
            document = json.loads(blob.read_at(0, _LARGEST))
    except (ValueError, RecursionError) as error:
        raise CannotExamineError(f"{path}: observed invalid JSON ({error}), expected a report of aotidoctor") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise CannotExamineError(f"{path}: observed different JSON, expected a report of aotidoctor ({SCHEMA})")
    return document


def saved_case(report: JsonObject) -> Case:
    """What a report says of its case: what it was about, and the host."""
    artifact = as_object(report.get("artifact"))
    kinds = {kind.value: kind for kind in ArtifactKind}
    return Case(
        artifact=Artifact(
            path=str(artifact.get("path") or ""),
            kind=kinds.get(str(artifact.get("kind")), ArtifactKind.OTHER),
            size=as_integer(artifact.get("size")) or 0,
        ),
        host=_host(as_object(report.get("host"))),
    )


def _host(machine: JsonObject) -> Host:
    try:
        return records.from_json(Host, machine)
    except records.RecordError:
        names = ("system", "machine", "python")
        system, kind, python = (str(machine.get(name) or "") for name in names)
        return Host(system=system, machine=kind, python=python)
