"""A report into a file: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def write_file(path: Path, text: str) -> None:
    """Write a whole file or none; missing folders are made. Devices and pipes are written in place. Raises OSError."""
    data = text.encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        _write_in_place(path, data)
        return
    replace_file(Path(os.path.realpath(path)), data)


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file or none. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def remove_drafts(folder: Path, names: Callable[[str], bool]) -> None:
    """Remove what processes that were killed in ``replace_file`` left of the files that ``names`` knows.

    Only for a folder that nobody else writes to. Raises OSError.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            name, _, number = entry.name.removeprefix(".").rpartition(".")
            if entry.name.startswith(".") and number.isdecimal() and names(name):
                Path(entry.path).unlink(missing_ok=True)


def _write_in_place(path: Path, data: bytes) -> None:
    # Without waiting: a named pipe that nobody reads would hold the process for ever.
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
