"""Calls of a package on CUDA that are made in another way than usual: each launch waited for, another stream, captured.

Parts of the result: ``launch_*`` (``hooks.launches``), ``cuda_memory`` (free and total bytes of the device before the
call), ``cuda_device`` (the index it ran on), ``variant`` (what was done, once it was).
"""

from __future__ import annotations

import resource
from typing import Any

from aotidoctor.model.answers.called import DeviceMemory
from aotidoctor.model.jobs import Run
from aotidoctor.worker.call import Call
from aotidoctor.worker.calls import synchronize
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load import LoadedModel

WARM_UPS = 2


def make_cuda_calls(model: LoadedModel, call: Call, payload: Run, channel: Channel) -> None:
    """The calls that the payload asks for."""
    if payload.launch_trace:
        _traced(model, call, payload, channel)
    else:
        _varied(model, call, payload, channel)


def limit_files(limit: int) -> None:
    """No file that is written from here on grows beyond ``limit`` bytes; Python ignores the signal that tells so."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit if hard < 0 else min(limit, hard), hard))


def _traced(model: LoadedModel, call: Call, payload: Run, channel: Channel) -> None:
    from aotidoctor.worker.hooks.launches import trace_launches

    channel.enter("trace")
    launches = trace_launches(model.directory, channel)
    if launches is None:
        return
    count = max(1, payload.calls)
    saved = call.copy() if count > 1 else None
    for number in range(1, count + 1):
        channel.enter(f"run{number}")
        launches.begin(number)
        try:
            result = model(*call.args, **call.kwargs)
        finally:
            launches.finish()
        synchronize(payload.device)
        del result
        if saved is not None and number < count:
            call.restore(saved)


def _varied(model: LoadedModel, call: Call, payload: Run, channel: Channel) -> None:
    import torch

    index = payload.device_index
    if index >= 0:
        torch.cuda.set_device(index)
        call = _on_device(call, f"cuda:{index}")
    free, total = torch.cuda.mem_get_info()
    channel.put(cuda_memory=DeviceMemory(free=free, total=total))
    variant = payload.cuda_variant
    if variant == "stream":
        _on_stream(model, call, channel)
    elif variant == "capture":
        _captured(model, call, channel)
    else:
        channel.enter("run1")
        model(*call.args, **call.kwargs)
        synchronize(payload.device)
    channel.put(variant=variant)


def _on_stream(model: LoadedModel, call: Call, channel: Channel) -> None:
    import torch

    side: Any = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    channel.enter("run1")
    with torch.cuda.stream(side):
        model(*call.args, **call.kwargs)
    side.synchronize()


def _captured(model: LoadedModel, call: Call, channel: Channel) -> None:
    """Warmed up on a side stream, as torch asks for: constants are folded in the first call."""
    import torch

    side: Any = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    channel.enter("run1")
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            model(*call.args, **call.kwargs)
    side.synchronize()
    graph: Any = torch.cuda.CUDAGraph()
    channel.enter("capture")
    with torch.cuda.graph(graph):
        model(*call.args, **call.kwargs)
    channel.enter("replay")
    graph.replay()
    torch.cuda.synchronize()


def _on_device(call: Call, device: str) -> Call:
    """CUDA tensors on that device; those of the CPU stay where they are."""
    import torch

    def move(_: str, leaf: Any) -> Any:
        return leaf.to(device) if isinstance(leaf, torch.Tensor) and leaf.is_cuda else leaf

    return call.rebuilt(move)
