"""A JSON report that was written before, read back as it stands, and the case that it was about."""

from __future__ import annotations

import json
import os
import stat

from aotidoctor.model import records
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.host import Host
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.report import SCHEMA

# In bytes; reports are cut long before.
_LARGEST = 64 << 20


def _opener(path: str, flags: int) -> int:
    """Open without waiting for the other end of a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_saved(path: str) -> JsonObject:
    """The document. Raises CannotExamineError where the file is no report of ours."""
    try:
        with open(path, "rb", opener=_opener) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise CannotExamineError(f"{path}: observed no regular file, expected a report of aotidoctor")
            document = json.loads(stream.read(_LARGEST))
    except OSError as error:
        raise CannotExamineError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CannotExamineError(f"{path}: observed invalid JSON ({error}), expected a report of aotidoctor") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise CannotExamineError(f"{path}: observed different JSON, expected a report of aotidoctor ({SCHEMA})")
    return document


def saved_case(report: JsonObject) -> Case:
    """What a report says of its case: what it was about, and the host."""
    about, machine = report.get("artifact"), report.get("host")
    artifact = about if isinstance(about, dict) else {}
    kinds = {kind.value: kind for kind in ArtifactKind}
    size = artifact.get("size")
    return Case(
        artifact=Artifact(
            path=str(artifact.get("path") or ""),
            kind=kinds.get(str(artifact.get("kind")), ArtifactKind.OTHER),
            size=size if isinstance(size, int) else 0,
        ),
        host=_host(machine if isinstance(machine, dict) else {}),
    )


def _host(machine: JsonObject) -> Host:
    try:
        return records.from_json(Host, machine)
    except records.RecordError:
        names = ("system", "machine", "python")
        system, kind, python = (str(machine.get(name) or "") for name in names)
        return Host(system=system, machine=kind, python=python)
