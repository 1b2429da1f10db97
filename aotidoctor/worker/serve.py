"""Serve one request in this process, from its directory to its exit status.

The exit status is 0 after a result, 1 after an exception that was reported, 120 when the job never began (torch could
not be imported, or the request could not be read), 121 when the side channel could not be written. The process leaves
with ``_exit``: what interpreters and libraries do at exit belongs to no stage, and takes longer than most runs.

Before the code under examination begins, the child sets its limits, its death with its parent and its marker; for a
debugger it allows tracing, writes down the process number, and waits until it is traced.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
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
from aotidoctor.model.run import NO_CHANNEL, NO_TORCH, RUN_VARIABLE, STACKS_SIGNAL, portable
from aotidoctor.worker import JOBS
from aotidoctor.worker.channel import Channel, ChannelLostError

# Limits, death with the parent, the marker of the run.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1
_M_PERTURB = -6


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the one that started it ends; exit at once if ``parent`` is gone.

    The two differ when ``python`` is a wrapper that starts the interpreter as a child of its own.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    try:
        os.kill(parent, 0)
    except ProcessLookupError:
        os._exit(125)
    except PermissionError:
        pass


def stand_between(parent: int) -> None:
    """Fork where ``parent``, the command, started this process itself; only the new process returns.

    Code that kills its parent then kills the process between, and not the command. That one ends as the new one ends.
    """
    if os.getppid() != parent:
        # The warm worker, or a script that started the interpreter, stands there already.
        return
    try:
        pid = os.fork()
    except OSError:
        return
    if pid == 0:
        die_with_parent(os.getppid())
        return
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        # What the new process wrote about its end is enough.
        faulthandler.disable()
        with suppress(OSError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def become_subreaper() -> None:
    """Become the parent of orphaned descendants, instead of the machine's first process."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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
    """Address of the marker from ``exec``: read once, as ``getenv`` finds another place after the first ``putenv``."""
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    address: int | None = libc.getenv(RUN_VARIABLE.encode())
    return address


def fill_new_memory(byte: int) -> bool:
    """Let glibc fill every new block with ``byte`` (0..254), so that reads of uninitialised memory have an effect.

    Returns whether glibc accepted it. 255 would mean "off" to glibc and is refused. The threshold keeps big blocks in
    the heap, where the filling happens on reuse too: fresh pages of the kernel would be zero.
    """
    if not 0 <= byte <= 254:
        raise ValueError(f"fill byte: observed {byte}, expected 0..254")
    libc = ctypes.CDLL(None)
    threshold = libc.mallopt(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)
    return bool(threshold) and bool(libc.mallopt(_M_PERTURB, byte ^ 0xFF))


def keep_memory() -> None:
    """Let glibc reuse large blocks; otherwise each comes from the kernel, which fills its pages with zeros first."""
    with suppress(AttributeError):  # Another C library has no such switches.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def heap_checks_loaded() -> bool:
    """Whether glibc's debugging allocator is loaded in this process; it can only be preloaded."""
    return "libc_malloc_debug" in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")


# The child's side of a debugger.
_PR_SET_PTRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)
# The parent gives up sooner, and reports that; this limit is for a parent that is stopped.
_WAIT_S = 20.0


def wait_for_debugger(channel: Channel) -> None:
    """Enter stage ``attach``; return when this process is traced, or when the parent reports that it will not be."""
    channel.enter("attach")
    _write_whole(channel.run_dir, "attach")
    refused = channel.run_dir / "no_debugger"
    deadline = time.monotonic() + _WAIT_S
    while not refused.exists() and time.monotonic() < deadline:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status.splitlines()):
            return
        time.sleep(0.005)


def _write_whole(run_dir: Path, name: str) -> None:
    """Write the process number to a file in one step: the parent may be reading."""
    made = run_dir / f"{name}.new"
    made.write_text(str(os.getpid()), encoding="ascii")
    made.rename(run_dir / name)


def serve(run_dir: Path, *, forked: bool, ask: Callable[[Any, Channel], Any] | None = None) -> None:
    """Read ``request.json`` in ``run_dir``, run the job, exit. Never returns, whatever happens.

    ``ask`` replaces the job in a process that has loaded the model already.
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
        _redirect_streams(run_dir)
        for name, value in request["env"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        # The cached folder is that of the warm worker.
        tempfile.tempdir = None
    if portable(os.environ):
        _die_with_input()
    else:
        die_with_parent(request["parent"])
        set_marker(request["token"])
        # No core file. 1 and not 0: only 1 also stops a handler that the kernel feeds through a pipe (fs/coredump.c).
        import resource

        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (1 if hard != 0 else 0, hard))
        if not forked:
            stand_between(request["parent"])
        # The first victim when memory runs out, not the parent or the forkserver.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        if request["debugger"] or request["stacks"]:
            # Let any process of this user trace this one: with Yama only a parent may, and gdb is a sibling.
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
    # For the parent, which may have started a script that started this process.
    _write_whole(run_dir, "pid")
    os.chdir(run_dir / "cwd")
    faulthandler.enable(file=2, all_threads=True)
    if hasattr(faulthandler, "register"):
        faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)
    warnings.showwarning = lambda message, category, *_: channel.warn(f"{category.__name__}: {message}")
    channel.enter("import")
    module, function, kind = JOBS[request["job"]]
    try:
        payload = from_json(kind, request["payload"])
        job = ask or _load_job(module, function, torch=getattr(payload, "torch", True))
    except BaseException as error:
        channel.error(type(error).__name__, str(error), traceback.format_exc(), fatal=True)
        return NO_TORCH
    if request["debugger"]:
        wait_for_debugger(channel)
    # Only now: a limit for the model must not stop the import of torch.
    if (limit := request["memory_limit"]) is not None:
        _limit_memory(limit, channel)
    return _run_job(request["asked_env"], channel, partial(job, payload), loads=ask is None)


def _die_with_input() -> None:
    """End when the standard input ends, which the parent holds open; the code under examination gets an empty one."""
    held = os.dup(0)
    empty, end = os.pipe()
    os.close(end)
    os.dup2(empty, 0)
    os.close(empty)

    def wait() -> None:
        try:
            # Each byte asks where the code is.
            while os.read(held, 1):
                faulthandler.dump_traceback(file=2, all_threads=True)
        except OSError:
            return  # The code under examination closed it.
        os._exit(125)

    threading.Thread(target=wait, name="aotidoctor-parent", daemon=True).start()


def _limit_memory(limit: int, channel: Channel) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except ImportError:
        channel.warn(f"no memory limit of {limit} bytes: this system has none")


def _c_environ(name: str) -> str | None:
    """The variable as C code sees it; on Windows as Python does."""
    if os.name == "nt":
        return os.environ.get(name)
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    raw = getenv(name.encode())
    return None if raw is None else os.fsdecode(raw)


def _run_job(environ: dict[str, str | None], channel: Channel, job: Callable[[Channel], Any], *, loads: bool) -> int:
    """Run the job and report its result or its error; the exit status. ``environ`` is the requested environment."""
    channel.enter("setup")
    try:
        channel.put(env_took_effect={name: _c_environ(name) == environ[name] for name in environ if name != "TMPDIR"})
        if loads and "torch" in sys.modules:
            # PyTorch may unpack outside of TMPDIR: the parent gets the folder, and removes it.
            from aotidoctor.worker.load_package import follow_unpacking

            follow_unpacking(channel)
        result = job(channel)
        channel.enter("done")
        channel.done(result)
    except ChannelLostError:
        raise
    except BaseException as error:
        try:
            text = str(error)
        except Exception as inner:
            text = f"<no text: str() raised {type(inner).__name__}>"
        if "API call failed" in text and "torch" in sys.modules:
            from aotidoctor.worker.load_package import last_error

            channel.put(last_error=last_error())
        channel.error(type(error).__name__, text, traceback.format_exc())
        return 1
    return 0


def _load_job(module: str, function: str, *, torch: bool) -> Callable[[Any, Channel], Any]:
    """The function of a job, after the import of torch if that job needs it."""
    if torch and "torch" not in sys.modules:
        # Objects made by this import stay for good: garbage need not be collected among them, now or later.
        gc.disable()
        try:
            importlib.import_module("torch")
            gc.freeze()
        finally:
            gc.enable()
    try:
        found: Callable[[Any, Channel], Any] = getattr(importlib.import_module(module), function)
    except Exception as error:
        raise OwnCodeError(f"{type(error).__name__}: {error}") from error
    return found


def _redirect_streams(run_dir: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for number, name in ((1, "stdout"), (2, "stderr")):
        fd = os.open(run_dir / name, os.O_WRONLY | os.O_APPEND)
        os.dup2(fd, number)
        os.close(fd)
