"""What the compiled code says of its last failure (packages of torch 2.13 and later).

PyTorch before 2.13 raises "API call failed" without it, and the reason goes to stderr only, which a program may have
closed or sent elsewhere.
"""

from __future__ import annotations

import _ctypes
import ctypes
import os
from contextlib import suppress

from aotidoctor.worker.unpacked import mapped_library

_NAME = "AOTInductorGetLastError"


def last_error() -> str | None:
    """The message of the library that this thread called last; None where it has none, or no way to say it."""
    path = mapped_library()
    if path is None:
        return None
    with suppress(OSError):
        # Only if it is loaded: nothing of a package is loaded to ask this.
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        try:
            return _said(library)
        finally:
            _ctypes.dlclose(library._handle)
    return None


def _said(library: ctypes.CDLL) -> str | None:
    function, text = getattr(library, _NAME, None), ctypes.c_char_p()
    if function is None or function(ctypes.byref(text)) != 0 or not text.value:
        return None
    return text.value.decode(errors="replace")
