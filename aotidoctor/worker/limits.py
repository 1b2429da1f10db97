"""What a child does to itself before the code under examination begins: limits, death with its parent, its marker."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from contextlib import suppress
from functools import cache
from pathlib import Path

from aotidoctor.model.child_protocol import MARKER

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_M_MMAP_THRESHOLD = -3
_M_PERTURB = -6


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the one that started it ends; leave at once if ``parent`` is gone.

    The two differ when ``python`` is a wrapper that starts the interpreter as a child of its own.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    try:
        os.kill(parent, 0)
    except ProcessLookupError:
        os._exit(125)
    except PermissionError:
        pass


def become_subreaper() -> None:
    """Be the parent of what descendants leave behind, instead of the machine's first process."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def no_core_file() -> None:
    """Leave no core file, neither on disk nor with a core handler."""
    # 1 and not 0: only 1 also stops a handler that the kernel feeds through a pipe (fs/coredump.c).
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (1 if hard != 0 else 0, hard))


def limit_memory(limit: int | None) -> None:
    """Allow at most ``limit`` bytes of address space; None leaves it as it is."""
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def first_choice_of_oom_killer() -> None:
    """When memory runs out, the kernel shall take this process, not the parent or the forkserver."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def set_marker(token: str) -> None:
    """Put ``token`` where ``/proc/<pid>/environ`` shows it, for this process and all that it starts.

    That file shows the memory that ``exec`` filled, which ``putenv`` does not touch: a forked child has to overwrite
    the forkserver's marker in place. All markers have one length.
    """
    address = _marker_address()
    if address and len(ctypes.string_at(address)) == len(token):
        ctypes.memmove(address, token.encode(), len(token))
    os.environ[MARKER] = token


@cache
def _marker_address() -> int | None:
    """Where ``exec`` put the marker: asked once, as ``getenv`` finds another place after the first ``putenv``."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    address: int | None = libc.getenv(MARKER.encode())
    return address


def fill_new_memory(byte: int) -> bool:
    """Let glibc fill every new block with ``byte`` (0..254), so that reading it uninitialised shows.

    Returns whether glibc took it. 255 would mean "off" to glibc and is refused. The threshold keeps big blocks in the
    heap, where the filling happens on reuse too: fresh pages of the kernel would be zero.
    """
    if not 0 <= byte <= 254:
        raise ValueError(f"fill byte: observed {byte}, expected 0..254")
    libc = ctypes.CDLL(None)
    threshold = libc.mallopt(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)
    return bool(threshold) and bool(libc.mallopt(_M_PERTURB, byte ^ 0xFF))


def heap_checks_loaded() -> bool:
    """Whether glibc's debugging allocator is in this process; it is preloaded or not at all."""
    return "libc_malloc_debug" in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
