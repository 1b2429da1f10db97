"""Packages that are not on this machine: a name under which they are read, and how to get at their bytes.

Whoever can fetch parts of a package registers it; the readers then read by ranges, as they do of files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aotidoctor.readers.package.blob import Blob

_REGISTERED: dict[str, Blob] = {}


@contextmanager
def registered(name: str, blob: Blob) -> Iterator[None]:
    """Within: ``name`` is read through ``blob``."""
    _REGISTERED[name] = blob
    try:
        yield
    finally:
        _REGISTERED.pop(name, None)


def source(name: str) -> Blob | None:
    """What ``name`` is read through; None for a path."""
    return _REGISTERED.get(name)
