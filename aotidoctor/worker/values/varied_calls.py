"""Make calls that differ in one thing: the inputs, the memory beyond them, the rows, or the threads.

``read_beyond`` measures how far compiled code reads beyond its inputs, without its source, from the running code. Each
input is moved to memory of its own that continues after its last element and before its first one, with the same shape
and strides. The values there are changed, for one input after the other: outputs that change with them depend on
elements that the input does not have. Then the furthest such element is searched for, and dims of other inputs that
have that many rows are made one shorter: if fewer rows are read then, the number comes from that dim. Nothing crashes,
no address is inspected, and the values are such as the input itself may hold.

Parts of the result: ``read_beyond`` with ``decided`` (equal calls give equal outputs), ``looked`` (paths of the
inputs) and ``leaves``: per input that is read beyond ``path``, ``elements``, ``needed``, ``before`` (also or only
before its first one), ``rows`` (None if that is not a whole number), ``follows`` (pairs of path and dim).
``sub_batch``, a ``RowsCompared`` with the outputs whose dim 0 is the batch: all rows, the first of them, and all
again. ``against_threads`` with ``threads`` (the two counts), ``repeatable`` (whether the calls with each count are
equal to one another) and the comparison of one thread with several.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, replace
from typing import Any

import torch

from aotidoctor.model.answers import RowsCompared, ThreadsCompared
from aotidoctor.model.jobs import Run, SubBatch
from aotidoctor.model.record import to_json
from aotidoctor.worker.call import ModelCall, make_calls, read_call
from aotidoctor.worker.channel import MAX_TEXT, Channel
from aotidoctor.worker.load_package import LoadedModel
from aotidoctor.worker.reference_program import share_reference
from aotidoctor.worker.run_reference import compare_call
from aotidoctor.worker.tensors import compare_results, copy_result, digest, leaf_output, result_tensors

# Reads beyond the inputs. Elements before the first one: with every element type an alignment of 64 bytes stays.
ELEMENTS_IN_FRONT = 64
MOST_LEAVES, MOST_DIMS = 32, 8
# Elements behind the last one, and bytes of all of them.
ROOM, MOST_BYTES = 4096, 256 * 1024 * 1024
READ_BEYOND_S = 20.0


@dataclass(slots=True)
class _PaddedInput:
    """An input in its own memory, which begins ``ELEMENTS_IN_FRONT`` before it; ``values`` are its original ones."""

    path: str
    tensor: Any
    memory: Any
    values: Any

    @property
    def span(self) -> int:
        """Number of elements from its first to its last one."""
        return int(self.values.numel())

    @property
    def room(self) -> int:
        """Number of elements behind it."""
        return int(self.memory.numel()) - ELEMENTS_IN_FRONT - self.span

    def fill(self, value: Any, *, behind: int | None = None, before: bool = False, base: Any = None) -> None:
        """Restore it with ``base`` around it, and ``value`` from the ``behind``-th element after it, or before it."""
        self.memory.fill_(base)
        self.memory[ELEMENTS_IN_FRONT : ELEMENTS_IN_FRONT + self.span] = self.values
        if behind is not None:
            self.memory[ELEMENTS_IN_FRONT + self.span + behind :] = value
        if before:
            self.memory[:ELEMENTS_IN_FRONT] = value


class _OverReadSearch:
    """The model, its call, and each input in its zone."""

    def __init__(self, model: LoadedModel, call: ModelCall, zones: dict[str, _PaddedInput]) -> None:
        self.model, self.call, self.zones = model, call, zones
        self.until = time.monotonic() + READ_BEYOND_S

    def outputs(self) -> tuple[Any, ...]:
        """Digests of the outputs; each call sees the inputs as they were."""
        placed = self.call.rebuilt(lambda path, leaf: self.zones[path].tensor if path in self.zones else leaf)
        result = self.model(*placed.args, **placed.kwargs)
        return tuple((path, tuple(leaf.shape), digest(leaf)) for path, leaf in result_tensors(result))

    def plain(self) -> None:
        """Restore all zones, surrounded by values that the input may hold."""
        for zone in self.zones.values():
            zone.fill(None, base=_fillings(zone.values)[0])

    def changes(self, zone: _PaddedInput, plain: tuple[Any, ...], **where: Any) -> bool:
        """Whether the outputs change with the values at ``where`` (arguments of ``fill``)."""
        base, *others = _fillings(zone.values)
        for value in others:
            self.plain()
            zone.fill(value, base=base, **where)
            if self.outputs() != plain:
                return True
        return False

    @property
    def spent(self) -> bool:
        """Whether the time is up, so that no further input is examined."""
        return time.monotonic() > self.until


def read_beyond(model: LoadedModel, call: ModelCall, channel: Channel) -> None:
    """Measure how far the model reads beyond each input, and send the findings."""
    zones = {path: zone for path, leaf in call.tensors() if (zone := _zone(path, leaf, call)) is not None}
    zones = dict(list(zones.items())[:MOST_LEAVES])
    search = _OverReadSearch(model, call, zones)
    channel.enter("run1")
    search.plain()
    plain = search.outputs()
    channel.enter("run2")
    search.plain()
    decided = search.outputs() == plain
    found: list[dict[str, Any]] = []
    looked: list[str] = []
    for zone in zones.values() if decided else ():
        if search.spent:
            break
        looked.append(zone.path)
        before, behind = search.changes(zone, plain, before=True), search.changes(zone, plain, behind=0)
        if before or behind:
            needed = zone.span + (_furthest(search, zone, plain) if behind else 0)
            rows, follows = None, []
            shape = zone.tensor.shape
            row = zone.span // shape[0] if len(shape) and zone.tensor.is_contiguous() else 0
            if row and needed % row == 0:
                rows = needed // row
                last = max((rows - 1) * row - zone.span, 0)
                # Dims of other inputs that have as many rows.
                follows = [
                    [other.path, dim]
                    for other in zones.values()
                    for dim, size in enumerate(other.tensor.shape[:MOST_DIMS])
                    if other is not zone and size == rows > 1 and other.tensor.is_contiguous()
                    if _follows(search, zone, last, other.path, dim)
                ]
            facts = {"elements": zone.span, "needed": needed, "before": before, "rows": rows, "follows": follows}
            found.append({"path": zone.path, **facts})
    channel.enter("scan")
    channel.put(read_beyond={"decided": decided, "looked": looked, "leaves": found})


def _zone(path: str, leaf: Any, call: ModelCall) -> _PaddedInput | None:
    """The input in its own memory; None if it has no plain memory on the CPU, no elements, or too many."""
    if leaf.layout != torch.strided or leaf.device.type != "cpu" or leaf.is_quantized or leaf.numel() == 0:
        return None
    if leaf.is_conj() or leaf.is_neg() or type(leaf) not in (torch.Tensor, torch.nn.Parameter):
        return None
    most = max(_span(other) for _, other in call.tensors())
    span, room = _span(leaf), 4 * most + ROOM
    if (ELEMENTS_IN_FRONT + span + room) * leaf.element_size() * len(call.tensors()) > MOST_BYTES:
        return None
    with torch.no_grad():
        values = leaf.detach().as_strided((span,), (1,), leaf.storage_offset()).clone()
        memory = torch.zeros(ELEMENTS_IN_FRONT + span + room, dtype=leaf.dtype)
    tensor = memory.as_strided(tuple(leaf.shape), tuple(leaf.stride()), ELEMENTS_IN_FRONT)
    return _PaddedInput(path=path, tensor=tensor, memory=memory, values=values)


def _span(leaf: Any) -> int:
    return 1 + sum(int((size - 1) * step) for size, step in zip(leaf.shape, leaf.stride(), strict=True) if size > 0)


def _fillings(values: Any) -> tuple[Any, ...]:
    """Values to put around an input: numbers of any size for floats, for others values of its own."""
    if values.is_floating_point() or values.is_complex():
        return (0.25, -1.75, 97.0)
    if values.dtype == torch.bool:
        return (False, True)
    try:
        low, high = values.min().item(), values.max().item()
    except (RuntimeError, NotImplementedError):
        # Not every integer type can be compared.
        low = high = values[0].item()
    return (low, high) if low != high else (low,)


def _furthest(search: _OverReadSearch, zone: _PaddedInput, plain: tuple[Any, ...]) -> int:
    """Number of elements behind the input up to the last one that changes the outputs."""
    low, high = 0, zone.room
    while high - low > 1 and not search.spent:
        middle = (low + high) // 2
        if search.changes(zone, plain, behind=middle):
            low = middle
        else:
            high = middle
    return low + 1


def _follows(search: _OverReadSearch, zone: _PaddedInput, last: int, path: str, dim: int) -> bool:
    """Whether the ``last`` row behind the input is no longer read when that dim of the other input is one shorter."""
    from torch import contiguous_format as plain_format

    def shorter(at: str, leaf: Any) -> Any:
        # A copy: the model may write to it.
        return leaf.narrow(dim, 0, leaf.shape[dim] - 1).clone(memory_format=plain_format) if at == path else leaf

    others = {name: one for name, one in search.zones.items() if name != path}
    cut = _OverReadSearch(search.model, search.call.rebuilt(shorter), others)
    try:
        cut.plain()
        plain = cut.outputs()
        return not cut.changes(zone, plain, behind=last)
    except Exception:
        # It refuses the shorter one: then nothing is known.
        return False


def compare_rows(model: LoadedModel, call: ModelCall, wanted: SubBatch, channel: Channel) -> None:
    """Compare a call with all rows with one of the first rows; ``wanted`` names the leaves to cut."""
    rows, inputs, outputs = wanted.rows, frozenset(wanted.inputs), frozenset(wanted.outputs)
    # Cut before the first call, which may write to its inputs; cloned for alignment, and so that no memory is shared.
    part = (call.copy() or call).rebuilt(lambda path, leaf: leaf[:rows].clone() if path in inputs else leaf)
    again = call.copy() or call
    of = max(leaf.shape[0] for path, leaf in call.tensors() if path in inputs)
    channel.enter("run1")
    whole = _copy_outputs(model(*call.args, **call.kwargs), outputs)
    channel.enter("run2")
    some = _copy_outputs(model(*part.args, **part.kwargs), outputs)
    channel.enter("run3")
    second = _copy_outputs(model(*again.args, **again.kwargs), outputs)
    channel.enter("scan")
    repeatable = [digest(leaf) for leaf in whole.values()] == [digest(leaf) for leaf in second.values()]
    compared = compare_results(list(some.values()), [leaf[:rows] for leaf in whole.values()])
    leaves = zip(whole, compared["outputs"], strict=True)
    channel.put(
        sub_batch=RowsCompared(
            rows=rows,
            of=of,
            repeatable=repeatable,
            agrees=compared["agrees"],
            outputs=tuple(leaf_output({**leaf, "path": path}) for path, leaf in leaves),
        )
    )


def _copy_outputs(result: Any, outputs: frozenset[str]) -> dict[str, Any]:
    """Copies of the outputs in question: another call may reuse their memory."""
    return {path: leaf.detach().clone() for path, leaf in result_tensors(result) if path in outputs}


# Other numbers of threads.
CALLS = 3


def compare_threads(model: LoadedModel, call: ModelCall, threads: int, channel: Channel) -> None:
    """Compare calls with the current number of threads with those with ``threads``."""
    saved = call.copy()
    counts = [torch.get_num_threads(), threads]
    firsts: list[Any] = []
    bits: list[Any] = []
    repeatable: list[bool] = []
    for count in counts:
        torch.set_num_threads(count)
        digests = []
        for number in range(CALLS):
            channel.enter(f"run{CALLS * len(repeatable) + number + 1}")
            result = model(*call.args, **call.kwargs)
            channel.enter("scan")
            digests.append([digest(leaf) for _, leaf in result_tensors(result)])
            if number == 0:
                # A copy: another call may use the same memory.
                firsts.append(copy_result(result))
            if saved is not None:
                call.restore(saved)
        bits.append(digests[0])
        repeatable.append(all(one == digests[0] for one in digests))
    compared = compare_results(firsts[1], firsts[0])
    channel.put(
        against_threads=ThreadsCompared(
            threads=tuple(counts),
            repeatable=tuple(repeatable),
            same=bits[0] == bits[1],
            agrees=compared["agrees"],
            outputs=tuple(map(leaf_output, compared["outputs"])),
        )
    )


# Many calls.
class _SampleChannel(Channel):
    """The channel of one of many calls: its parts are gathered in ``values``."""

    def __init__(self, whole: Channel) -> None:
        vars(self).update(vars(whole))
        self.values: dict[str, Any] = {}

    def put(self, **values: Any) -> None:
        """Keep part of the result, as it is now."""
        self.values.update({name: to_json(value) for name, value in values.items()})


def call_samples(model: LoadedModel, payload: Run, channel: Channel) -> None:
    """Make one call with each of ``payload.samples``; one that raises does not end them, unless a GPU is lost with it.

    A file with many of them is read once, and again after a call that wrote to its inputs.
    """
    if payload.reference:
        channel.enter("reference")
        share_reference(payload.reference, channel)
    files: dict[str, Any] = {}
    for number, source in enumerate(payload.samples):
        part = _SampleChannel(channel)
        began = time.perf_counter()
        try:
            part.enter("inputs")
            _call_sample(model, replace(payload, inputs=source), part, files)
        except Exception as error:
            raised = {"type": type(error).__name__, "message": str(error)[:MAX_TEXT]}
            part.put(error={**raised, "traceback": traceback.format_exc()[-MAX_TEXT:]}, stage=part.stage)
        part.put(seconds=time.perf_counter() - began)
        channel.put(**{f"sample{number}": part.values})
        if "error" in part.values and payload.device != "cpu":
            # What a kernel did wrong fails every later call of its process.
            return
        if any(one.get("changed") for one in part.values.get("inputs", ())):
            files.clear()


def _call_sample(model: LoadedModel, payload: Run, part: _SampleChannel, files: dict[str, Any]) -> None:
    call = read_call(payload.inputs, part, files)
    described = call.describe(values=True)
    part.put(inputs=described)
    outputs = make_calls(model, replace(call, described=described), payload, part)
    if payload.reference:
        part.enter("reference")
        part.put(**compare_call(payload, model, call, outputs, part))
