"""A JSON report that was written before, read back as it stands."""

from __future__ import annotations

import json
import os
import stat

from aotidoctor.model.errors import CannotExamineError
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
        raise CannotExamineError(f"{path}: observed no JSON ({error}), expected a report of aotidoctor") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise CannotExamineError(f"{path}: observed other JSON, expected a report of aotidoctor ({SCHEMA})")
    return document
