"""Job ``hook``: load an init library as the server does, call its two functions, and unload it.

The stages are ``dlopen``, ``symbols``, ``init``, ``release``, ``dlclose``. Parts of the result: ``loaded``, ``found``
(names of functions that are there), ``handle`` (of init; 0 is no failure), ``released``.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from aotidoctor.model.jobs import Hook
from aotidoctor.model.serving_hook import INIT, RELEASE
from aotidoctor.worker.channel import Channel


def hook(payload: Hook, channel: Channel) -> dict[str, Any]:
    """Do it. ``payload`` holds ``library``, ``folder`` (the version's) and ``device_index``."""
    channel.enter("dlopen")
    # torch is loaded by now, as the backend has it loaded.
    library = ctypes.CDLL(payload.library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    channel.put(loaded=True)
    channel.enter("symbols")
    found = [name for name in (INIT, RELEASE) if hasattr(library, name)]
    channel.put(found=found)
    if INIT not in found:
        return {}
    init = library[INIT]
    init.argtypes, init.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    channel.enter("init")
    folder = os.fsencode(channel.user_cwd / payload.folder)
    handle = init(folder, payload.device_index)
    channel.put(handle=handle or 0)
    if RELEASE not in found:
        return {}
    release = library[RELEASE]
    release.argtypes, release.restype = [ctypes.c_void_p], None
    channel.enter("release")
    release(handle)
    channel.put(released=True)
    channel.enter("dlclose")
    _close(library)
    return {}


def _close(library: ctypes.CDLL) -> None:
    """What a library's destructors do when it goes is part of what the server will meet."""
    dlclose = ctypes.CDLL(None).dlclose
    dlclose.argtypes = [ctypes.c_void_p]
    dlclose(library._handle)
