"""The CUDA driver that a loaded package calls, found by the address in the package's own slots."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from aotidoctor.worker.hooks.slots import HooksUnavailableError, Slot

LIBRARY = "libcuda.so.1"
# The names of those that matter most, the same whatever the driver calls them.
NAMES = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    201: "CUDA_ERROR_INVALID_CONTEXT",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    710: "CUDA_ERROR_ASSERT",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    719: "CUDA_ERROR_LAUNCH_FAILED",
}


class _Info(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class Driver:
    """The few functions of the driver that the trace needs."""

    def __init__(self, library: Any, path: str) -> None:
        self._library = library
        self.path = path

    def synchronize(self) -> int:
        """Wait for everything that was launched; the driver's result."""
        return int(self._library.cuCtxSynchronize())

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a result."""
        name = NAMES.get(code) or self._text("cuGetErrorName", code) or f"CUDA error {code}"
        return name, self._text("cuGetErrorString", code) or ""

    def kernel_name(self, function: int) -> str | None:
        """The name of a function's handle; None where the driver is older than CUDA 12.3, or does not know it."""
        ask = getattr(self._library, "cuFuncGetName", None)
        name = ctypes.c_char_p()
        if ask is None or ask(ctypes.byref(name), ctypes.c_void_p(function)) != 0 or not name.value:
            return None
        return name.value.decode("utf-8", "replace")

    def _text(self, function: str, code: int) -> str | None:
        ask = getattr(self._library, function, None)
        text = ctypes.c_char_p()
        if ask is None or ask(ctypes.c_int(code), ctypes.byref(text)) != 0 or not text.value:
            return None
        return text.value.decode("utf-8", "replace")


def driver_of(slots: list[Slot], directory: Path) -> Driver:
    """The driver that the slots lead to; the one by its usual name where they do not tell.

    A package is loaded with its symbols to itself, so the driver need not be in the global scope: looking the functions
    up by name alone may find none.

    Raises:
        HooksUnavailableError: no driver, or one that cannot wait.
    """
    path = next((found for slot in slots if (found := _library_at(slot.target))), None)
    if path is None or directory.resolve() in Path(path).resolve().parents:
        # A slot that was not bound yet leads back into the package.
        path = LIBRARY
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW)
        library.cuCtxSynchronize.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        raise HooksUnavailableError(f"the driver that the package calls cannot be synchronised: {error}") from error
    return Driver(library, path)


def _library_at(address: int) -> str | None:
    """The file whose image holds ``address``."""
    info = _Info()
    found = ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return os.fsdecode(info.file) if found and info.file else None
