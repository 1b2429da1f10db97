"""A zip archive that is the same for the same members: fixed times and modes, sorted, no extra fields."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from aotidoctor.commands.bundle import MANIFEST
from aotidoctor.commands.bundle.pieces import Sealed

_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_UNIX = 3


def zipped(members: Sequence[Sealed]) -> bytes:
    """The archive; the manifest comes first, the others by name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for member in sorted(members, key=lambda one: (one.name != MANIFEST, one.name)):
            entry = zipfile.ZipInfo(member.name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = _MODE
            entry.create_system = _UNIX
            archive.writestr(entry, member.data)
    return stream.getvalue()


def write_whole(path: Path, data: bytes) -> None:
    """Write all of a file or none of it; missing folders are made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with draft.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
