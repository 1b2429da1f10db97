"""Call the model and report outputs, inputs and memory after each call; job ``save_inputs``.

Every call gets the same values: inputs that a call wrote to are restored for the next one (if ``mutation`` is observed
and the copies were not too big). So a difference between calls comes from the model itself.

Parts of the result: ``outputs`` (per call a list of leaves; from the third call on only path and digest), ``inputs``
again with ``changed``, ``rss`` (bytes after each call). Calls on CUDA may wait for each launch, run on another stream,
or be captured; their parts are ``launch_*`` (``call_hooks.package_calls``), ``cuda_memory`` (free and total bytes of
the device before the call), ``cuda_device`` (the index it ran on), ``variant`` (the variant, once it has run).

Job ``save_inputs`` writes the tensors of a call to one file of ``torch.save``, keyed by the user's paths.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import sys
from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.answers import DeviceMemory
from aotidoctor.model.jobs import InputsSource, Run, SaveInputs
from aotidoctor.model.record import record
from aotidoctor.worker.call_hooks.package_calls import trace_launches, traced_calls
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load_package import LoadedModel, operator_exception
from aotidoctor.worker.safe_load import load_inputs
from aotidoctor.worker.tensors import (
    Visit,
    copy_result,
    describe,
    digest,
    nbytes,
    rebuild,
    result_tensors,
    storage_address,
    tensors,
    walk_call,
)

# The arguments: real tensors, their state before the call, and how to restore it.
KEEP_BYTES = 512 * 1024 * 1024
"""Copies of inputs and outputs are made up to this size, so that looking does not exhaust the memory."""


@record
class ModelCall:
    """Arguments of one call. ``described`` is the result of ``describe`` before the call."""

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

        def clone(_: str, leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            try:
                return leaf.detach().clone().requires_grad_(leaf.requires_grad)
            except (RuntimeError, NotImplementedError):
                return leaf

        return self.rebuilt(clone)

    def rebuilt(self, visit: Visit) -> ModelCall:
        """The same call with each leaf replaced by ``visit(path, leaf)``."""
        args, kwargs = rebuild(self.args, "args", visit), rebuild(self.kwargs, "kwargs", visit)
        return ModelCall(args=args, kwargs=kwargs, described=self.described)

    def restore(self, saved: ModelCall) -> None:
        """Write the values of ``saved`` back into our tensors."""
        with torch.no_grad():
            for (_, mine), (_, old) in zip(self.tensors(), saved.tensors(), strict=True):
                write_back(mine, old)


def write_back(tensor: Any, values: Any) -> None:
    """Copy ``values`` into ``tensor``; if that is expanded, into the elements that it really has."""
    if tensor.layout is torch.strided:
        for dim, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if step == 0 and size > 1:
                tensor, values = tensor.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    tensor.copy_(values)


def read_call(source: InputsSource | None, channel: Channel, files: dict[str, Any] | None = None) -> ModelCall:
    """Load the call whose inputs ``source`` names; ``files`` are those that were read, as of ``load_inputs``."""
    if source is None:
        raise ValueError("this job was given no inputs")
    if source.path is not None:
        source = replace(source, path=str(channel.user_cwd / source.path))
    args, kwargs = load_inputs(source, files)
    return ModelCall(args=args, kwargs=kwargs)


# The calls.
_FULL_CALLS = 2
# In kB: Linux 4.5 and later.
_TAKEN = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap):\s*(\d{1,15}) kB$", re.MULTILINE)


class CallObserver:
    """Gathers the observations over the calls of one run.

    ``saved`` are the inputs as they were before, ``first_result`` is the first result if it will be compared.
    """

    def __init__(self, call: ModelCall, payload: Run, channel: Channel) -> None:
        self.wanted = frozenset(payload.observe)
        self.channel = channel
        self.call = call
        self.calls = max(1, payload.calls)
        self.before = call.digests() if "mutation" in self.wanted else []
        self.compared = bool(payload.reference)
        self.saved = call.copy() if self.calls > 1 or "mutation" in self.wanted or self.compared else None
        self.first_result: Any = None
        self.outputs: list[list[dict[str, Any]]] = []
        self.rss: list[int] = []
        self.changed = False

    def look(self, number: int, result: Any) -> None:
        """After call ``number``: record everything that the payload observes."""
        leaves = result_tensors(result)
        self.outputs.append([self._output(path, leaf, leaves, full=number <= _FULL_CALLS) for path, leaf in leaves])
        if number == 1 and self.before:
            pairs = zip(self.before, self.call.digests(), strict=True)
            changed = [None if old is None or new is None else old != new for old, new in pairs]
            inputs = [{**facts, "changed": it} for facts, it in zip(self.call.described, changed, strict=True)]
            self.changed = any(changed)
            self.channel.put(inputs=inputs)
        if number == 1 and self.compared:
            # A copy: another call may use its memory.
            copied = self.calls > 1 and sum(nbytes(leaf) for _, leaf in leaves) <= KEEP_BYTES
            self.first_result = copy_result(result) if copied else result
        if number <= _FULL_CALLS:
            self.channel.put(outputs=self.outputs)

    def after(self, number: int) -> None:
        """After call ``number``, with its outputs dropped: measure memory, and restore the inputs for the next call."""
        if "rss" in self.wanted:
            self.rss.append(resident_bytes())
        if number < self.calls and self.saved is not None and self.changed:
            self.call.restore(self.saved)

    def finish(self) -> None:
        """Send the parts of the result that are complete only at the end."""
        if self.calls > 1:
            self.channel.put(outputs=self.outputs)
        if self.rss:
            self.channel.put(rss=self.rss)

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
    """Make the calls; return the inputs as they were before, and the first result (for a comparison)."""
    observer = CallObserver(call, payload, channel)
    marks: list[int] = []
    for number in range(1, observer.calls + 1):
        channel.enter(f"run{number}")
        # The number of calls traced before this call of the model: where its own begin.
        count = traced_calls()
        if count is not None:
            marks.append(count)
            channel.put(trace_marks=marks)
        before = operator_exception()
        if "memory" in payload.observe:
            result, peak = call_with_memory(model, call)
            channel.put(allocated_peak=peak)
        else:
            result = model(*call.args, **call.kwargs)
        if (raised := operator_exception()) != before:
            channel.put(unseen_exception=raised)
        synchronize(payload.device)
        channel.enter("scan")
        observer.look(number, result)
        del result
        observer.after(number)
    observer.finish()
    return observer.saved, observer.first_result


def call_with_memory(model: Callable[..., Any], call: ModelCall) -> tuple[Any, int]:
    """The result, and the most bytes that the call held of what PyTorch's allocator for the CPU gave it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        result = model(*call.args, **call.kwargs)
    events = [
        (one.start_ns(), one.nbytes()) for one in seen.profiler.kineto_results.events() if one.name() == "[memory]"
    ]
    held = list(itertools.accumulate(size for _, size in sorted(events, key=lambda event: event[0])))
    return result, max(held, default=0)


def resident_bytes() -> int:
    """Bytes of memory that this process has taken and not given back, swapped out or not.

    Pages of files are not counted: the host drops and reloads them at will, which made a healthy call look like a leak.
    """
    if not sys.platform.startswith("linux"):
        # The most memory that this process had, on macOS and Windows, where the present figure needs native code.
        if os.name != "nt":
            import resource

            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # PROCESS_MEMORY_COUNTERS: two numbers of 32 bits, then eight of the size of a pointer; the first is the peak.
        counters = (ctypes.c_size_t * 9)()
        libraries: Any = vars(ctypes)["windll"]
        process = ctypes.c_void_p(libraries.kernel32.GetCurrentProcess())
        libraries.psapi.GetProcessMemoryInfo(process, ctypes.byref(counters), ctypes.sizeof(counters))
        return int(counters[1])
    taken = _TAKEN.findall(Path("/proc/self/status").read_bytes())
    if taken:
        return sum(map(int, taken)) * 1024
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def set_threads(count: int | None, channel: Channel) -> None:
    """Let PyTorch use ``count`` threads (None: as it is), and report how many it uses."""
    if count is not None:
        torch.set_num_threads(count)
    channel.put(threads=torch.get_num_threads())


def synchronize(device: str) -> None:
    """Wait for the device, so that a fault shows here at the latest, in the stage that it belongs to."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def _sharing(address: int, others: list[tuple[str, Any]]) -> list[int]:
    """Indices of the tensors whose memory is at ``address``."""
    if address == 0:
        return []
    return [index for index, (_, other) in enumerate(others) if other is not None and storage_address(other) == address]


# Calls on CUDA.
WARM_UPS = 2


def make_cuda_calls(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> None:
    """Make the calls that the payload requests: with traced launches, on a side stream, captured, or a plain one."""
    if payload.launch_trace:
        _call_traced(model, call, payload, channel)
        return
    index = payload.device_index
    if index >= 0:
        torch.cuda.set_device(index)
        # CUDA tensors move to that device; those of the CPU stay where they are.
        device = f"cuda:{index}"
        call = call.rebuilt(
            lambda _, leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) and leaf.is_cuda else leaf
        )
    free, total = torch.cuda.mem_get_info()
    channel.put(cuda_memory=DeviceMemory(free=free, total=total))
    variant = payload.cuda_variant
    if variant in ("stream", "capture"):
        side: Any = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        channel.enter("run1")
        with torch.cuda.stream(side):
            # A capture is warmed up on a side stream, as torch requires: constants are folded in the first call.
            for _ in range(WARM_UPS if variant == "capture" else 1):
                model(*call.args, **call.kwargs)
        side.synchronize()
    else:
        channel.enter("run1")
        model(*call.args, **call.kwargs)
        synchronize(payload.device)
    if variant == "capture":
        graph: Any = torch.cuda.CUDAGraph()
        channel.enter("capture")
        with torch.cuda.graph(graph):
            model(*call.args, **call.kwargs)
        channel.enter("replay")
        graph.replay()
        torch.cuda.synchronize()
    channel.put(variant=variant)


def _call_traced(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> None:
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


def save_inputs(payload: SaveInputs, channel: Channel) -> dict[str, Any]:
    """Write ``payload.target`` from ``payload.inputs``; ``paths`` names the leaves to write (None: all of them).

    The result ``saved`` is the number of tensors that were written.
    """
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    wanted = payload.paths
    found = {path: tensor for path, tensor in call.tensors() if wanted is None or path in wanted}
    torch.save(found, payload.target)
    return {"saved": len(found)}
