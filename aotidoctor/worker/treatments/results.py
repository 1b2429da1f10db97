"""Treatment of one call of the compiled code: something else in place of what it wrote, and the rest as it is.

``put_nodes``: values of the exported program. Which node a buffer stands for the package does not say: those of as many
elements are tried, the nearest first, until the outputs agree with the program's. ``put_zeros``: zeros in
place of NaN and Inf. A step names the call by its number in the run (``call``) and its ``symbol``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice, permutations
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker.against import compare_outputs, settle
from aotidoctor.worker.call import Call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.hooks import HooksUnavailableError
from aotidoctor.worker.leaves import copied, rebuild_result
from aotidoctor.worker.load import LoadedModel
from aotidoctor.worker.reference import attempt, load_reference, tolerances_of
from aotidoctor.worker.treatments.errors import TreatmentError
from aotidoctor.worker.values.candidates import Candidates, Node, gather
from aotidoctor.worker.values.watch import ValueWatch

# Per buffer, and for all buffers of the call together.
_NODES, _TRIES = 4, 8
_MAX_DIMS = 6

Model = Callable[..., Any]
Put = Callable[[int, Any], None]
"""What to do with the tensor that the call wrote as its nth."""


def mended(model: LoadedModel, call: Call, payload: Run, channel: Channel) -> Model:
    """A model that does as the treatment says whenever it is called.

    Raises:
        TreatmentError: the call is not there, or nothing fits what it wrote.
    """
    step = next(step for step in payload.treatment if step["op"] in ("put_nodes", "put_zeros"))
    channel.enter("inputs")
    if step["op"] == "put_zeros":
        return Mended(model, step, lambda _, tensor: _zero(tensor))
    return _with_nodes(model, step, call, payload, channel)


class Mended:
    """A model one call of whose compiled code has its results changed by ``put`` before anybody reads them."""

    def __init__(self, model: LoadedModel, step: dict[str, Any], put: Put) -> None:
        self._model, self._step, self._put = model, step, put

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the model returns then. Raises ``TreatmentError`` where there was no such call."""
        seen, wanted = [0], int(self._step["call"])

        def on_written(tensor: Any) -> dict[str, Any]:
            if len(watch.calls) - 1 == wanted and watch.calls[wanted]["symbol"] == self._step["symbol"]:
                self._put(seen[0], tensor)
                seen[0] += 1
            return {}

        watch = ValueWatch(self._model.directory, on_written)
        try:
            watch.start()
        except (HooksUnavailableError, OSError) as error:
            raise TreatmentError(f"calls of the package cannot be followed: {error}") from error
        try:
            return self._model(*args, **kwargs)
        finally:
            watch.stop()
            if not seen[0]:
                told = watch.problems[0] if watch.problems else f"it was not call {wanted} of this run"
                raise TreatmentError(f"{self._step['symbol']}: {told}")


def _with_nodes(model: LoadedModel, step: dict[str, Any], call: Call, payload: Run, channel: Channel) -> Model:
    reference = load_reference(payload.reference or "", channel)
    if reference.program is None:
        raise TreatmentError("the reference has no nodes")
    seen, wanted = attempt(reference, call.copy() or call)
    if wanted is None:
        raise TreatmentError(f"the reference does not take these inputs: {seen.get('error')}")
    values = _values(model, step, call, gather(reference.program, call))
    nearest: Model | None = None
    for choice in islice(values, _TRIES):
        tried = Mended(model, step, _putting(choice))
        nearest = nearest or tried
        given = call.copy() or call
        # A copy: outputs may lie in memory that the next call uses.
        outputs = rebuild_result(tried(*given.args, **given.kwargs), copied)
        facts = compare_outputs(outputs, wanted, tolerances_of(payload))
        settle(facts)
        if facts["agrees"]:
            return tried
    if nearest is None:
        raise TreatmentError("no node of the program has as many elements as what the call wrote")
    return nearest


def _values(
    model: LoadedModel, step: dict[str, Any], call: Call, candidates: Candidates
) -> Iterator[tuple[Any | None, ...]]:
    """What may be put into the buffers that the call writes, best first; None where a buffer is right as it is."""
    choices: list[Sequence[Any | None]] = []

    def look(_: int, tensor: Any) -> None:
        agrees = candidates.closest(tensor).get("agrees")
        fitting = [_laid_out(node, tensor) for node in candidates.nearest(tensor, _NODES)] if agrees is False else []
        choices.append([value for value in fitting if value is not None] or [None])

    given = call.copy() or call
    Mended(model, step, look)(*given.args, **given.kwargs)
    for rank in nearest_first([len(some) for some in choices]):
        picked = tuple(some[at] for some, at in zip(choices, rank, strict=True))
        if any(value is not None for value in picked):
            yield picked


def nearest_first(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """A rank for each buffer, one of ``sizes``: the nearest of all first, then those further off, one by one.

    A call may write many buffers: all combinations would be too many.
    """
    first = (0,) * len(sizes)
    waiting, known = [(0, first)], {first}
    while waiting:
        total, rank = heappop(waiting)
        yield rank
        for at, size in enumerate(sizes):
            further = (*rank[:at], rank[at] + 1, *rank[at + 1 :])
            if further[at] < size and further not in known:
                known.add(further)
                heappush(waiting, (total + 1, further))


def _laid_out(node: Node, tensor: Any) -> Any | None:
    """The node's value in the shape of the buffer, its dims in the order that comes nearest to what stands there."""
    shape, value = tuple(tensor.shape), node.value
    if value.is_complex() or tensor.is_complex():
        return None
    views = [value.reshape(shape)]
    if value.dim() <= _MAX_DIMS and sorted(value.shape) == sorted(shape):
        orders = permutations(range(value.dim()))
        views += [one for order in orders if tuple((one := value.permute(order)).shape) == shape]
    return min(views, key=lambda view: float((view.double() - tensor.double()).abs().nan_to_num(1e30).max()))


def _putting(values: Sequence[Any | None]) -> Put:
    def put(number: int, tensor: Any) -> None:
        value = values[number] if number < len(values) else None
        if value is not None:
            tensor.copy_(value)

    return put


def _zero(tensor: Any) -> None:
    import torch

    if tensor.is_floating_point() or tensor.is_complex():
        tensor.masked_fill_(~torch.isfinite(tensor), 0)
