"""Serve one request in this process, from its directory to its exit status.

The exit status is 0 after a result, 1 after an exception that was reported, 120 when the job never began (torch could
not be imported, or the request could not be read), 121 when the side channel could not be written. The process leaves
with ``_exit``: what interpreters and libraries do at exit belongs to no stage, and takes longer than most runs.

Before the code under examination begins, the child sets its limits, its death with its parent and its marker; where a
debugger is wanted it allows it, tells it the process number, and waits until it is there.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from aotidoctor.model.evidence import OwnCodeError
from aotidoctor.model.record_json import from_json
from aotidoctor.model.run import NO_CHANNEL, NO_TORCH, RUN_VARIABLE, STACKS_SIGNAL
from aotidoctor.worker import JOBS
from aotidoctor.worker.channel import Channel, ChannelLostError

# Limits, death with the parent, the marker of the run.

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
    os.environ[RUN_VARIABLE] = token


@cache
def _marker_address() -> int | None:
    """Where ``exec`` put the marker: asked once, as ``getenv`` finds another place after the first ``putenv``."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    address: int | None = libc.getenv(RUN_VARIABLE.encode())
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


# The child's side of a debugger.

_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)
# The parent gives up sooner, and says so; this is for a parent that is stopped.
_WAIT_S = 20.0


def allow_debugger() -> None:
    """Let any process of this user look at this one: with Yama only a parent may, and gdb is a sibling."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)


def write_process_number(run_dir: Path) -> None:
    """Write down the number of this process: the parent may have started a script that started it."""
    _write_whole(run_dir, "pid")


def wait_for_debugger(channel: Channel) -> None:
    """Stage ``attach``: go on when this process is traced, or when the parent says that it will not be."""
    channel.enter("attach")
    _write_whole(channel.run_dir, "attach")
    refused = channel.run_dir / "no_debugger"
    deadline = time.monotonic() + _WAIT_S
    while not _is_traced() and not refused.exists() and time.monotonic() < deadline:
        time.sleep(0.005)


def _is_traced() -> bool:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status.splitlines())


def _write_whole(run_dir: Path, name: str) -> None:
    """All of the file or nothing of it: the parent may be reading."""
    made = run_dir / f"{name}.new"
    made.write_text(str(os.getpid()), encoding="ascii")
    made.rename(run_dir / name)


def serve(run_dir: Path, *, forked: bool, ask: Callable[[Any, Channel], Any] | None = None) -> None:
    """Read ``request.json`` in ``run_dir``, do the job, leave. Never returns, whatever happens.

    ``ask`` does the job of a process that has the model already.
    """
    code = NO_CHANNEL
    try:
        request = json.loads((run_dir / "request.json").read_text(encoding="utf-8"))
        places = {name: Path(request[name]) for name in ("user_cwd", "scratch")}
        channel = Channel(run_dir / "channel.jsonl", run_dir=run_dir, **places)
        code = _serve(request, channel, run_dir, forked=forked, ask=ask)
    except ChannelLostError as error:
        print(f"aotidoctor worker: {error}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):
                stream.flush()
        os._exit(code)


def _serve(request: dict[str, Any], channel: Channel, run_dir: Path, *, forked: bool, ask: Any) -> int:
    channel.enter("start")
    if forked:
        os.setsid()
        _take_files(run_dir)
        for name, value in request["env"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        # What the warm worker remembered is its own folder.
        tempfile.tempdir = None
    die_with_parent(request["parent"])
    set_marker(request["token"])
    no_core_file()
    first_choice_of_oom_killer()
    if request["debugger"] or request["stacks"]:
        allow_debugger()
    write_process_number(run_dir)
    os.chdir(run_dir / "cwd")
    faulthandler.enable(file=2, all_threads=True)
    faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)
    warnings.showwarning = lambda message, category, *_: channel.warn(f"{category.__name__}: {message}")
    channel.enter("import")
    module, function, kind = JOBS[request["job"]]
    try:
        payload = from_json(kind, request["payload"])
        if getattr(payload, "torch", True):
            _import_torch()
        job = ask or _job(module, function)
    except BaseException as error:
        channel.error(type(error).__name__, str(error), traceback.format_exc(), fatal=True)
        return NO_TORCH
    if request["debugger"]:
        wait_for_debugger(channel)
    # Only now: a limit meant for the model must not stop torch from being imported.
    limit_memory(request["memory_limit"])
    return _do(request["asked_env"], channel, partial(job, payload), loads=ask is None)


def _import_torch() -> None:
    """What it makes stays for good: nobody need look through that for cycles, neither now nor later."""
    if "torch" in sys.modules:
        return
    gc.disable()
    try:
        import torch  # noqa: F401

        gc.freeze()
    finally:
        gc.enable()


def _do(asked_env: dict[str, str | None], channel: Channel, job: Callable[[Channel], Any], *, loads: bool) -> int:
    channel.enter("setup")
    try:
        import ctypes

        getenv = ctypes.CDLL(None).getenv
        getenv.restype = ctypes.c_char_p
        seen = {name: getenv(name.encode()) for name in asked_env if name != "TMPDIR"}
        channel.put(
            env_took_effect={
                name: (None if raw is None else os.fsdecode(raw)) == asked_env[name] for name, raw in seen.items()
            }
        )
        if loads and "torch" in sys.modules:
            # What PyTorch unpacks elsewhere than we may expect is told to the parent, which removes it.
            from aotidoctor.worker.load_package import follow_unpacking

            follow_unpacking(channel)
        result = job(channel)
        channel.enter("done")
        channel.done(result)
    except ChannelLostError:
        raise
    except BaseException as error:
        text = _text(error)
        if "API call failed" in text and "torch" in sys.modules:
            from aotidoctor.worker.load_package import last_error

            channel.put(last_error=last_error())
        channel.error(type(error).__name__, text, traceback.format_exc())
        return 1
    return 0


def _job(module: str, function: str) -> Callable[[Any, Channel], Any]:
    try:
        found: Callable[[Any, Channel], Any] = getattr(importlib.import_module(module), function)
    except Exception as error:
        raise OwnCodeError(f"{type(error).__name__}: {error}") from error
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as inner:
        return f"<no text: str() raised {type(inner).__name__}>"


def _take_files(run_dir: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for number, name in ((1, "stdout"), (2, "stderr")):
        fd = os.open(run_dir / name, os.O_WRONLY | os.O_APPEND)
        os.dup2(fd, number)
        os.close(fd)
