"""What a compiled model's C interface tells without running it: names and counts of inputs, outputs and constants."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from typing import Any

from aotidoctor.model.c10 import scalar_type

_LARGEST = 256 * 1024 * 1024
_KINDS = {0: "unknown", 1: "parameter", 2: "buffer", 3: "tensorconstant", 4: "foldedconstant"}
_TEXT = ctypes.c_char_p
_SIZE = ctypes.c_size_t
_PREFIX = "AOTInductorModelContainer"


def library_contains(library: Path | None, text: bytes) -> bool:
    """Whether the file holds ``text`` anywhere."""
    if library is None:
        return False
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(text) >= 0


def exports(library: Path, what: str) -> bool:
    """Whether the C interface has ``what``: an older one lacks entry points, and PyTorch calls them unasked."""
    try:
        return hasattr(ctypes.CDLL(str(library), mode=os.RTLD_NOW), f"{_PREFIX}{what}")
    except OSError:
        return False


def describe_library(library: Path | None, device: str, problems: list[str]) -> dict[str, Any]:
    """``n_inputs``, ``n_outputs``, ``n_constants``, ``names`` of inputs, ``constants``; empty when it cannot be asked.

    Asking makes a second container, which loads the weights again: not done for large files or on other devices.
    """
    if library is None or device != "cpu" or library.stat().st_size > _LARGEST:
        return {}
    try:
        return _ask(ctypes.CDLL(str(library), mode=os.RTLD_NOW))
    except (OSError, AttributeError, RuntimeError) as error:
        problems.append(f"the library's own interface could not be called: {error}")
        return {}


def _ask(library: ctypes.CDLL) -> dict[str, Any]:
    handle = ctypes.c_void_p()
    create = library[f"{_PREFIX}CreateWithDevice"]
    if create(ctypes.byref(handle), _SIZE(1), b"cpu", None) != 0:
        raise RuntimeError("no container")
    try:
        counts = {
            f"n_{what.lower()}": _number(library, f"GetNum{what}", handle, _SIZE())
            for what in ("Inputs", "Outputs", "Constants")
        }
        names = [_text(library, "GetInputName", handle, at) for at in range(counts["n_inputs"])]
        constants = [_constant(library, handle, at) for at in range(counts["n_constants"])]
        return {**counts, "names": names, "constants": constants}
    finally:
        library[f"{_PREFIX}Delete"](handle)


def _constant(library: ctypes.CDLL, handle: ctypes.c_void_p, at: int) -> dict[str, Any]:
    kind = _number(library, "GetConstantType", handle, ctypes.c_int32(), at)
    return {
        "name": _text(library, "GetConstantName", handle, at),
        "original_fqn": _text(library, "GetConstantOriginalFQN", handle, at),
        "dtype": scalar_type(_number(library, "GetConstantDtype", handle, ctypes.c_int32(), at)),
        "kind": _KINDS.get(kind),
        "from_folded": bool(_number(library, "GetConstantFromFolded", handle, ctypes.c_bool(), at)),
        "data_size": _data_size(library, handle, at),
    }


def _data_size(library: ctypes.CDLL, handle: ctypes.c_void_p, at: int) -> int | None:
    """Bytes of the constant; None before torch 2.8."""
    if not hasattr(library, f"{_PREFIX}GetConstantDataSize"):
        return None
    return _number(library, "GetConstantDataSize", handle, _SIZE(), at)


def _number(library: ctypes.CDLL, name: str, handle: ctypes.c_void_p, into: Any, at: int | None = None) -> int:
    function = library[f"{_PREFIX}{name}"]
    where = () if at is None else (_SIZE(at),)
    if function(handle, *where, ctypes.byref(into)) != 0:
        raise RuntimeError(name)
    return int(into.value)


def _text(library: ctypes.CDLL, name: str, handle: ctypes.c_void_p, at: int) -> str:
    into = _TEXT()
    if library[f"{_PREFIX}{name}"](handle, _SIZE(at), ctypes.byref(into)) != 0:
        raise RuntimeError(name)
    return (into.value or b"").decode(errors="replace")
