"""Call the model once or more and report outputs, inputs and memory after each call; job ``save_inputs``.

Every call gets the same values: inputs that a call wrote to are restored for the next (if ``mutation`` is observed
and the copies were not too big). So calls that differ differ by themselves.

Parts of the result: ``outputs`` (per call a list of leaves; from the third call on only path and digest), ``inputs``
again with ``changed``, ``rss`` (bytes after each call). Calls on CUDA may have each launch waited for, run on another
stream, or be captured; their parts are ``launch_*`` (``call_hooks.package_calls``), ``cuda_memory`` (free and total
bytes of the device before the call), ``cuda_device`` (the index it ran on), ``variant`` (what was done, once it was).

Job ``save_inputs`` writes the tensors of a call to one file of ``torch.save``, by the user's paths of them.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from aotidoctor.model.answers import DeviceMemory
from aotidoctor.model.jobs import InputsSource, Run, SaveInputs
from aotidoctor.model.record import record
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load_package import LoadedModel
from aotidoctor.worker.tensors import (
    Visit,
    copy_leaf,
    describe,
    digest,
    nbytes,
    rebuild,
    rebuild_result,
    result_tensors,
    storage_address,
    tensors,
    walk_call,
)

# The arguments: real tensors, what they looked like before, and how to get that back.

KEEP_BYTES = 512 * 1024 * 1024
"""Copies of inputs and outputs are made up to this size, so that looking does not exhaust the memory."""


@record
class ModelCall:
    """Arguments of one call. ``described`` is what ``describe`` said before the model saw them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    described: list[dict[str, Any]] = field(default_factory=list)

    def tensors(self) -> list[tuple[str, Any]]:
        """``(path, tensor)`` of the tensor leaves in the user's flattening order."""
        return tensors(walk_call(self.args, self.kwargs))

    def describe(self, *, values: bool) -> list[dict[str, Any]]:
        """One object per tensor leaf."""
        return [describe(path, tensor, values=values) for path, tensor in self.tensors()]

    def digests(self) -> list[str | None]:
        """Digest of each tensor leaf's values."""
        return [digest(tensor) for _, tensor in self.tensors()]

    def copy(self) -> ModelCall | None:
        """A copy that shares no memory, with the same strides; None when it would be too big."""
        if sum(nbytes(tensor) for _, tensor in self.tensors()) > KEEP_BYTES:
            return None
        return self.rebuilt(_copy)

    def rebuilt(self, visit: Visit) -> ModelCall:
        """The same call with each leaf replaced by ``visit(path, leaf)``."""
        args, kwargs = rebuild(self.args, "args", visit), rebuild(self.kwargs, "kwargs", visit)
        return ModelCall(args=args, kwargs=kwargs, described=self.described)

    def restore(self, saved: ModelCall) -> None:
        """Write the values of ``saved`` back into our tensors."""
        import torch

        with torch.no_grad():
            for (_, mine), (_, old) in zip(self.tensors(), saved.tensors(), strict=True):
                write_back(mine, old)


def write_back(tensor: Any, values: Any) -> None:
    """Copy ``values`` into ``tensor``; of an expanded one into the elements that it has."""
    import torch

    if tensor.layout is torch.strided:
        for dim, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if step == 0 and size > 1:
                tensor, values = tensor.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    tensor.copy_(values)


def read_call(source: InputsSource | None, channel: Channel) -> ModelCall:
    """The call with the inputs that ``source`` names."""
    from aotidoctor.worker.safe_load import load_inputs

    if source is None:
        raise ValueError("this job was given no inputs")
    if source.path is not None:
        source = replace(source, path=str(channel.user_cwd / source.path))
    args, kwargs = load_inputs(source)
    return ModelCall(args=args, kwargs=kwargs)


def _copy(_: str, leaf: Any) -> Any:
    import torch

    if not isinstance(leaf, torch.Tensor):
        return leaf
    try:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    except (RuntimeError, NotImplementedError):
        return leaf


# The calls.

_FULL_CALLS = 2
# In kB: Linux 4.5 and later.
_TAKEN = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap):\s*(\d{1,15}) kB$", re.MULTILINE)


class CallObserver:
    """Gathers what is seen over the calls of one run.

    ``saved`` are the inputs as they were before, ``kept`` is the first result where it is to be compared.
    """

    def __init__(self, call: ModelCall, payload: Run, channel: Channel) -> None:
        self.wanted = frozenset(payload.observe)
        self.channel = channel
        self.call = call
        self.calls = max(1, payload.calls)
        self.before = call.digests() if "mutation" in self.wanted else []
        self.compared = bool(payload.reference)
        self.saved = call.copy() if self.calls > 1 or "mutation" in self.wanted or self.compared else None
        self.kept: Any = None
        self.outputs: list[list[dict[str, Any]]] = []
        self.rss: list[int] = []
        self.changed = False

    def look(self, number: int, result: Any) -> None:
        """After call ``number``: note everything that was asked for."""
        leaves = result_tensors(result)
        self.outputs.append([self._output(path, leaf, leaves, full=number <= _FULL_CALLS) for path, leaf in leaves])
        if number == 1:
            self._first(result, leaves)
        if number <= _FULL_CALLS:
            self.channel.put(outputs=self.outputs)

    def after(self, number: int) -> None:
        """After call ``number``, its outputs dropped: memory, and inputs as they were for the next call."""
        if "rss" in self.wanted:
            self.rss.append(resident_bytes())
        if number < self.calls and self.saved is not None and self.changed:
            self.call.restore(self.saved)

    def finish(self) -> None:
        """Hand over what only the end shows."""
        if self.calls > 1:
            self.channel.put(outputs=self.outputs)
        if self.rss:
            self.channel.put(rss=self.rss)

    def _first(self, result: Any, leaves: list[tuple[str, Any]]) -> None:
        if self.before:
            pairs = zip(self.before, self.call.digests(), strict=True)
            changed = [None if old is None or new is None else old != new for old, new in pairs]
            inputs = [{**facts, "changed": it} for facts, it in zip(self.call.described, changed, strict=True)]
            self.changed = any(changed)
            self.channel.put(inputs=inputs)
        if self.compared:
            # A copy: another call may use its memory.
            again = self.calls > 1 and sum(nbytes(leaf) for _, leaf in leaves) <= KEEP_BYTES
            self.kept = rebuild_result(result, copy_leaf) if again else result

    def _output(self, path: str, leaf: Any, leaves: list[tuple[str, Any]], *, full: bool) -> dict[str, Any]:
        if not full:
            return {"path": path, "sha256": digest(leaf)}
        facts = describe(path, leaf, values="values" in self.wanted)
        facts["sha256"] = digest(leaf)
        if "alias" in self.wanted:
            mine = storage_address(leaf)
            facts["aliases_inputs"] = _sharing(mine, self.call.tensors())
            others = [(name, None if name == path else other) for name, other in leaves]
            facts["aliases_outputs"] = _sharing(mine, others)
        return facts


def make_calls(
    model: Callable[..., Any], call: ModelCall, payload: Run, channel: Channel
) -> tuple[ModelCall | None, Any]:
    """Make the calls; the inputs as they were before, and the first call's result (for a comparison)."""
    observer = CallObserver(call, payload, channel)
    marks: list[int] = []
    for number in range(1, observer.calls + 1):
        channel.enter(f"run{number}")
        # Tell how many calls were traced before this call of the model: where its own begin.
        from aotidoctor.worker.call_hooks.package_calls import traced_calls

        count = traced_calls()
        if count is not None:
            marks.append(count)
            channel.put(trace_marks=marks)
        result = model(*call.args, **call.kwargs)
        synchronize(payload.device)
        channel.enter("scan")
        observer.look(number, result)
        del result
        observer.after(number)
    observer.finish()
    return observer.saved, observer.kept


def resident_bytes() -> int:
    """Memory that this process has taken and not given back, also where the host has swapped it out.

    Pages of files come and go as the host likes: on a busy one they made a healthy call look like a leak.
    """
    taken = _TAKEN.findall(Path("/proc/self/status").read_bytes())
    if taken:
        return sum(map(int, taken)) * 1024
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def set_threads(count: int | None, channel: Channel) -> None:
    """Let PyTorch use ``count`` threads, where a number is given, and tell how many it uses."""
    import torch

    if count is not None:
        torch.set_num_threads(count)
    channel.put(threads=torch.get_num_threads())


def synchronize(device: str) -> None:
    """A fault on the device shows here at the latest, in the stage that it belongs to."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def _sharing(address: int, others: list[tuple[str, Any]]) -> list[int]:
    """Indices of the tensors whose memory is at ``address``."""
    if address == 0:
        return []
    return [index for index, (_, other) in enumerate(others) if other is not None and storage_address(other) == address]


# Calls on CUDA.

WARM_UPS = 2


def make_cuda_calls(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> None:
    """The calls that the payload asks for."""
    if payload.launch_trace:
        _call_traced(model, call, payload, channel)
    else:
        _call_varied(model, call, payload, channel)


def limit_file_size(limit: int) -> None:
    """No file that is written from here on grows beyond ``limit`` bytes; Python ignores the signal that tells so."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit if hard < 0 else min(limit, hard), hard))


def _call_traced(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> None:
    from aotidoctor.worker.call_hooks.package_calls import trace_launches

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


def _call_varied(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> None:
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
        _call_captured(model, call, channel)
    else:
        channel.enter("run1")
        model(*call.args, **call.kwargs)
        synchronize(payload.device)
    channel.put(variant=variant)


def _on_stream(model: LoadedModel, call: ModelCall, channel: Channel) -> None:
    import torch

    side: Any = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    channel.enter("run1")
    with torch.cuda.stream(side):
        model(*call.args, **call.kwargs)
    side.synchronize()


def _call_captured(model: LoadedModel, call: ModelCall, channel: Channel) -> None:
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


def _on_device(call: ModelCall, device: str) -> ModelCall:
    """CUDA tensors on that device; those of the CPU stay where they are."""
    import torch

    def move(_: str, leaf: Any) -> Any:
        return leaf.to(device) if isinstance(leaf, torch.Tensor) and leaf.is_cuda else leaf

    return call.rebuilt(move)


# Job save_inputs.


def save_inputs(payload: SaveInputs, channel: Channel) -> dict[str, Any]:
    """Write ``payload.target`` from ``payload.inputs``; ``paths`` names the leaves wanted, all where it is None.

    The result is the number of tensors that were written.
    """
    import torch

    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    wanted = payload.paths
    found = {path: tensor for path, tensor in call.tensors() if wanted is None or path in wanted}
    torch.save(found, payload.target)
    return {"saved": len(found)}
