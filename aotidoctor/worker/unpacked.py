"""Where PyTorch's loader unpacked a package, on releases that do not say.

Up to 2.12 it makes a folder ``/tmp/XXXXXX``, whatever TMPDIR says; a load that fails and a process that dies leave it
behind with the whole package. So the one call of ``mkdtemp`` in libtorch goes through a function of ours, which tells
the parent of each folder: it removes them after the end of the child. Later releases unpack below TMPDIR.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

from aotidoctor.worker.channel import Channel

FIRST_BELOW_TMPDIR = (2, 13)
_MAKE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_folders: list[str] = []


def follow(channel: Channel) -> None:
    """Tell ``channel`` of each folder from now on, as ``unpacked``; does nothing where TMPDIR is heeded."""
    address = slot_address()
    if address is None:
        return
    from aotidoctor.worker.hooks.slots import HooksUnavailableError
    from aotidoctor.worker.hooks.torch_calls import call_around

    def make(real: Any, template: int) -> int | None:
        made: int | None = real(template)
        if made:
            _folders.append(os.fsdecode(ctypes.string_at(made)))
            channel.put(unpacked=_folders)
        return made

    try:
        call_around(address, _MAKE, make)
    except HooksUnavailableError as error:
        channel.warn(f"what a failed load leaves in /tmp is not removed: {error}")


def newest() -> Path:
    """The folder of the last load; where the library mapped last lies, else TMPDIR, if no folder was told."""
    if _folders:
        return Path(_folders[-1])
    library = mapped_library() if torch_release() < FIRST_BELOW_TMPDIR else None
    if library is not None and "/data/" in str(library):
        return Path(str(library).rpartition("/data/")[0])
    return Path(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108


def mapped_library() -> Path | None:
    """The compiled model that this process has loaded from a temporary directory; None when it cannot be told."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    paths = dict.fromkeys(line[line.index("/") :] for line in lines if "/" in line and line.endswith(".so"))
    models = [path for path in paths if path.endswith(".wrapper.so") or "/aotinductor/" in path]
    return Path(models[-1]) if models else None


def torch_release() -> tuple[int, int]:
    """Major and minor number of this PyTorch."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


@cache
def slot_address() -> int | None:
    """Address of libtorch's slot for ``mkdtemp``; None where it is not needed, or not found."""
    if torch_release() >= FIRST_BELOW_TMPDIR:
        return None
    from aotidoctor.worker.hooks.torch_calls import call_slot

    return call_slot("mkdtemp")
