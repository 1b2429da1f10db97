"""The map from placeholders to what they stand for: it stays with the owner, and never enters a bundle.

The file is made with mode 0600, never through a link, and never in the place of a file that is somebody else's or
something else.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.model.errors import UsageError
from aotidoctor.reports.redact.placeholders import Placeholders

SCHEMA = "aotidoctor.map/1"
_LARGEST = 8 << 20


def read_map(path: Path) -> Placeholders:
    """The placeholders of an earlier bundle; none where there is no file yet. Raises UsageError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Placeholders()
    except OSError as error:
        raise UsageError(f"{path} cannot be used as a map: {error.strerror or error}") from error
    try:
        _own(path, os.fstat(descriptor))
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            data = stream.read(_LARGEST + 1)
    finally:
        os.close(descriptor)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    table = document.get("placeholders") if isinstance(document, dict) and document.get("schema") == SCHEMA else None
    if not isinstance(table, dict):
        raise UsageError(f"{path} is not an aotidoctor map ({SCHEMA}); it is not overwritten")
    return Placeholders({str(key): text for key, text in table.items() if isinstance(text, str)})


def write_map(path: Path, table: Mapping[str, str]) -> None:
    """Write the map, the old one replaced as a whole. Raises OSError."""
    document = {"schema": SCHEMA, "placeholders": dict(table)}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=2, ensure_ascii=False)
            stream.write("\n")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _own(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{path} cannot be used as a map: it is not a file")
    if found.st_uid != os.geteuid():
        raise UsageError(f"{path} cannot be used as a map: it belongs to a different user")
