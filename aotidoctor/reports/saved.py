"""A JSON report that was written before, read back as it stands."""

from __future__ import annotations

import json
from pathlib import Path

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.report import SCHEMA

# In bytes; reports are cut long before.
_LARGEST = 64 << 20


def read_saved(path: str) -> JsonObject:
    """The document. Raises CannotExamineError where the file is no report of ours."""
    try:
        with Path(path).open("rb") as stream:
            document = json.loads(stream.read(_LARGEST))
    except OSError as error:
        raise CannotExamineError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CannotExamineError(f"{path}: observed no JSON ({error}), expected a report of aotidoctor") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise CannotExamineError(f"{path}: observed other JSON, expected a report of aotidoctor ({SCHEMA})")
    return document
