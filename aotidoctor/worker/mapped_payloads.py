"""Weights of an exported program as views of its file, for ``torch.export.load`` to use in place of copies.

The archive keeps each storage as it is in memory, uncompressed. Such a member is mapped, privately: what the program
writes to its buffers stays in this process. Pages that are only read belong to the page cache and to all processes.
Checksums are not looked at, as torch does not look at them.

Whatever is not like that (compressed, misaligned, empty, pickled, of another device) is left to torch.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aotidoctor.readers.package.blob import path_blob
from aotidoctor.readers.package.zip_directory import STORED, Entry, read_directory

_ALIGNMENT = 16
_Build = Callable[[Any, Any, str], dict[str, Any]]


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """While this is entered, ``torch.export.load(path)`` maps what it can. Torch before 2.9 copies as ever."""
    try:
        from torch.export.pt2_archive import _package
    except ImportError:
        yield
        return
    original = getattr(_package, "_build_file_map", None)
    build = _builder(original, path) if original is not None else None
    if build is None:
        yield
        return
    _package._build_file_map = build
    try:
        yield
    finally:
        _package._build_file_map = original


def _builder(original: _Build, path: Path) -> _Build | None:
    """Stands for torch's function: member name -> flat tensor of one storage; None where nothing can be mapped."""
    try:
        members = _members(path)
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):
        return None

    def build(reader: Any, config: Any, folder: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        left: dict[str, Any] = {}
        for fqn, meta in config.config.items():
            if meta.use_pickle or meta.path_name in made:
                continue
            entry = members.get(f"{folder}{meta.path_name}")
            tensor = _tensor(data, entry, meta.tensor_meta) if entry is not None else None
            if tensor is None:
                left[fqn] = meta
            else:
                made[meta.path_name] = tensor
        return made | (original(reader, type(config)(config=left), folder) if left else {})

    return build


def _members(path: Path) -> dict[str, Entry]:
    """The members that can be mapped, by their names below the archive's only folder."""
    directory = read_directory(path_blob(str(path), path.stat().st_size))
    entries = directory.entries if directory is not None else ()
    names = Counter(entry.name.partition("/")[2] for entry in entries)
    return {
        name: entry
        for entry in entries
        if names[name := entry.name.partition("/")[2]] == 1
        and entry.method == STORED
        and entry.size == entry.compressed > 0
        and not (entry.encrypted or entry.mismatch)
    }


def _tensor(data: mmap.mmap, entry: Entry, meta: Any) -> Any:
    """The flat tensor over a member's bytes; None where torch is to make it."""
    import torch
    from torch.export.pt2_archive import _package

    begin = entry.data_offset
    if begin is None or begin % _ALIGNMENT or meta is None or _package.deserialize_device(meta.device).type != "cpu":
        return None
    dtype = _package.deserialize_scalar_type(meta.dtype)
    if entry.size % dtype.itemsize or begin + entry.size > len(data):
        return None
    tensor = torch.frombuffer(data, dtype=dtype, count=entry.size // dtype.itemsize, offset=begin)
    return tensor.requires_grad_(True) if meta.requires_grad else tensor
