"""Serve one request in this process, from its directory to its exit status.

The exit status is 0 after a result, 1 after an exception that was reported, 120 when the job never began (torch could
not be imported, or the request could not be read), 121 when the side channel could not be written. The process leaves
with ``_exit``: what interpreters and libraries do at exit belongs to no stage, and takes longer than most runs.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.model.child_protocol import NO_CHANNEL, NO_TORCH, STACKS_SIGNAL
from aotidoctor.model.fault import OwnCodeError
from aotidoctor.model.records import from_json
from aotidoctor.worker import JOBS
from aotidoctor.worker.attach import allow_debugger, tell_process, wait_for_debugger
from aotidoctor.worker.channel import Channel, ChannelLostError
from aotidoctor.worker.limits import (
    die_with_parent,
    first_choice_of_oom_killer,
    limit_memory,
    no_core_file,
    set_marker,
)


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
        _leave(code)


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    os._exit(code)


def _serve(request: dict[str, Any], channel: Channel, run_dir: Path, *, forked: bool, ask: Any) -> int:
    channel.enter("start")
    _become_child(request, run_dir, forked=forked)
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
        channel.put(env_took_effect=_environment_as_seen(asked_env))
        if loads:
            _follow_loads(channel)
        result = job(channel)
        channel.enter("done")
        channel.done(result)
    except ChannelLostError:
        raise
    except BaseException as error:
        text = _text(error)
        if "API call failed" in text and "torch" in sys.modules:
            from aotidoctor.worker.last_error import last_error

            channel.put(last_error=last_error())
        channel.error(type(error).__name__, text, traceback.format_exc())
        return 1
    return 0


def _follow_loads(channel: Channel) -> None:
    """What PyTorch unpacks elsewhere than we may expect is told to the parent, which removes it."""
    if "torch" in sys.modules:
        from aotidoctor.worker.unpacked import follow

        follow(channel)


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


def _become_child(request: dict[str, Any], run_dir: Path, *, forked: bool) -> None:
    """Everything that makes this process a private one. A fresh interpreter got environment and files at its start."""
    if forked:
        os.setsid()
        _take_files(run_dir)
        for name, value in request["env"].items():
            _set_env(name, value)
        # What the warm worker remembered is its own folder.
        tempfile.tempdir = None
    die_with_parent(request["parent"])
    set_marker(request["token"])
    no_core_file()
    first_choice_of_oom_killer()
    if request["debugger"] or request["stacks"]:
        allow_debugger()
    tell_process(run_dir)
    os.chdir(run_dir / "cwd")
    faulthandler.enable(file=2, all_threads=True)
    faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)


def _take_files(run_dir: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for number, name in ((1, "stdout"), (2, "stderr")):
        fd = os.open(run_dir / name, os.O_WRONLY | os.O_APPEND)
        os.dup2(fd, number)
        os.close(fd)


def _set_env(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _environment_as_seen(changes: dict[str, str | None]) -> dict[str, bool]:
    """Whether C code of this process sees each change. TMPDIR is a directory below the one asked for: left out."""
    import ctypes

    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    seen = {name: getenv(name.encode()) for name in changes if name != "TMPDIR"}
    return {name: (None if raw is None else os.fsdecode(raw)) == changes[name] for name, raw in seen.items()}
