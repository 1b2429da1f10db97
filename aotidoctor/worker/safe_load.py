"""Torch files and plain pickles as objects, without calling a global that is not on the list.

``torch.load`` runs with ``weights_only=True``. What that refuses for its protocol or for numpy arrays goes through an
unpickler that knows the globals of ``aotidoctor.model.safe_globals`` and no others. Only a file that the user trusts is
unpickled as it is.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aotidoctor.model.safe_globals import SAFE_GLOBALS, global_name

_MAGIC = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")


def load_object(path: str, trusted: bool) -> Any:
    """An object of ``torch.save``, or of ``pickle.dump``."""
    import torch

    if _is_plain_pickle(path):
        with Path(path).open("rb") as stream:
            return pickle.load(stream) if trusted else _SafeUnpickler(stream).load()
    if trusted:
        return torch.load(path, map_location=placed, weights_only=False)
    return _restricted(lambda: path, placed)


def _restricted(source: Callable[[], Any], place: Any) -> Any:
    """``torch.load`` of ``source()``, first with torch's own restrictions, then with ours.

    Torch's own unpickler knows neither protocols 4 and 5 nor numpy, and stumbles over untyped storages in old files.
    """
    import torch

    try:
        return torch.load(source(), map_location=place, weights_only=True)
    except (pickle.UnpicklingError, AttributeError):
        return torch.load(source(), map_location=place, weights_only=False, pickle_module=_SafePickle)


def _is_plain_pickle(path: str) -> bool:
    """Neither the zip file nor the magic number that ``torch.save`` begins with."""
    with Path(path).open("rb") as stream:
        head = stream.read(32)
    return head[:2] != b"PK" and _MAGIC not in head


def placed(storage: Any, location: str) -> Any:
    """The storage itself (on the CPU) for a device that is not here; None leaves it to torch."""
    import torch

    kind, _, index = location.partition(":")
    if kind in ("cpu", "meta"):
        return None
    if kind == "cuda" and torch.cuda.is_available() and int(index or 0) < torch.cuda.device_count():
        return None
    return storage


class _SafeUnpickler(pickle.Unpickler):
    """Resolves the globals that the parent's reader describes, refuses all others."""

    def find_class(self, module: str, name: str) -> Any:
        full = global_name(module, name)
        if full == "torch.storage._load_from_bytes":
            return _load_storage
        if full not in SAFE_GLOBALS:
            raise pickle.UnpicklingError(f"unsafe global {full}")
        module, _, name = full.rpartition(".")
        return super().find_class(module, name)


def _load_storage(data: bytes) -> Any:
    """What ``torch.storage._load_from_bytes`` does, without executing what the bytes say."""
    return _restricted(lambda: io.BytesIO(data), "cpu")


class _SafePickle:
    """A pickle module as ``torch.load`` wants it."""

    __name__ = "aotidoctor.worker.safe_load"
    Unpickler = _SafeUnpickler
    UnpicklingError = pickle.UnpicklingError

    @staticmethod
    def load(stream: Any, **kwargs: Any) -> Any:
        """``pickle.load``, restricted."""
        return _SafeUnpickler(stream, **kwargs).load()
