"""Job ``load_time``: load and call a package as ``aoti_load_package`` does, and tell how long each part takes.

The parts that PyTorch's Python side does are stages of their own: ``imports`` (Inductor's modules), ``cpu_checks``
(what it asks of this CPU: it compiles and starts small programs). Inside of the loader the call of ``dlopen`` is timed:
what is before it unpacks the package, what is after it makes the model with its constants. ``load_parts`` in the result
has the seconds of ``unpack``, ``link`` and ``create``; it is missing where that call was not seen.
"""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load import LoadedModel, load_model
from aotidoctor.worker.setup_module import after_load, load_setup
from aotidoctor.worker.treatments import treat

_OPEN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
CALLS = 3


def load_time(payload: Run, channel: Channel) -> dict[str, Any]:
    """Do it; the stages are ``setup``, ``imports``, ``cpu_checks``, ``load``, ``after_load``, ``run1``..., ``done``."""
    module = load_setup(payload, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel) if payload.inputs is not None else None
    if payload.kind != "bare-so":
        _python_side(payload, channel)
    model = _load(payload, channel)
    channel.enter("after_load")
    after_load(module, model, channel)
    treat.load_weights(payload, model, channel)
    if call is not None:
        _calls(model, call, channel)
    channel.enter("unload")
    model.close()
    return {}


def _calls(model: LoadedModel, call: Call, channel: Channel) -> None:
    """A call may write to its inputs, which changes no time."""
    for number in range(1, CALLS + 1):
        channel.enter(f"run{number}")
        model(*call.args, **call.kwargs)


def _python_side(payload: Run, channel: Channel) -> None:
    """What ``aoti_load_package`` imports and asks before its loader begins; older releases ask nothing."""
    channel.enter("imports")
    for name in ("torch._inductor.package", "torch._inductor.codecache", "torch.export.pt2_archive._package"):
        with suppress(ImportError):
            import_module(name)
    channel.put(compile_cache=_use_compile_cache(payload.tmpdir or "/tmp"))  # noqa: S108 - as torch does
    channel.enter("cpu_checks")
    ask = getattr(import_module("torch._inductor.codecache"), "get_device_information", None)
    if ask is not None:
        # Whatever it raises, the loader itself does without the answer.
        with suppress(Exception):
            ask(payload.device)


def _use_compile_cache(tmpdir: str) -> bool:
    """Whether there is a folder in which an earlier process left the answers: ours has a TMPDIR of its own."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    if not os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        folder = Path(tmpdir) / Path(default_cache_dir()).name
        if not folder.is_dir():
            return False
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    return Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).is_dir()


def _load(payload: Run, channel: Channel) -> LoadedModel:
    opened = _time_opening(channel)
    channel.enter("load")
    began = time.monotonic()
    model = load_model(payload, channel.user_cwd / payload.package)
    ended = time.monotonic()
    if opened:
        first, last = opened[0][0], opened[-1][1]
        channel.put(load_parts={"unpack": first - began, "link": last - first, "create": ended - last})
    return model


def _time_opening(channel: Channel) -> list[tuple[float, float]]:
    """The times, filled as libtorch opens compiled code: when each opening began and ended."""
    from aotidoctor.worker.hooks.slots import HooksUnavailableError
    from aotidoctor.worker.hooks.torch_calls import call_around, call_slot

    times: list[tuple[float, float]] = []
    address = call_slot("dlopen")
    if address is None:
        return times

    def opening(real: Any, name: int | None, flags: int) -> int | None:
        began = time.monotonic()
        handle: int | None = real(name, flags)
        # PyTorch's own libraries are opened by name.
        if name and b"/" in ctypes.string_at(name):
            times.append((began, time.monotonic()))
        return handle

    try:
        call_around(address, _OPEN, opening)
    except HooksUnavailableError as error:
        channel.warn(f"unpacking and linking could not be separated: {error}")
    return times
