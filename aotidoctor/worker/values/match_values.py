"""Match the results of a package's calls with the nodes of a reference program, or replace them by those.

A buffer of the compiled code corresponds to a node of the program, but the package does not record to which: fused
kernels retain few of the nodes, under other names, sometimes flattened or permuted. So a buffer is compared with the
nodes of the same number of elements, the likely ones first; it *agrees* when one of them has its values within
tolerance.

The nodes are those of the exported graph, and of the graph after Inductor's decompositions (the compiled code works
on that one: amax and sum of a softmax are nodes there only). Where the decomposed graph gives other outputs than the
exported one, a decomposition is wrong: its nodes are left out, and ``decomposition_differs`` is set.

``watch_call`` is part of job ``run``. Part of the result, ``watch``: ``calls`` (see ``follow_values.ValueWatch``),
``outputs`` (``path``; ``from``, the number of the call that wrote it; ``agrees``, whether it has the values of a
node), ``notes``, ``problem`` (why there is nothing, else None), ``compared`` (with a reference), ``places`` (source
lines of the reference's operators), ``decomposition_differs``.

A treatment replaces the results of one call. ``put_nodes``: by values of the exported program. The package does not
record which node a buffer is: those of as many elements are tried, the nearest first, until the outputs agree with the
program's. ``put_zeros``: zeros in place of NaN and Inf. A step names the call by its number in
the run (``call``) and its ``symbol``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import islice, permutations
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aotidoctor.model.case import user_function
from aotidoctor.model.jobs import Run
from aotidoctor.model.record import record
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.call_hooks.slots import HooksUnavailableError
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compile_program import compiler_decompositions
from aotidoctor.worker.float64.float64_run import program_leaves
from aotidoctor.worker.load_package import LoadedModel
from aotidoctor.worker.reference_program import call_reference, load_reference
from aotidoctor.worker.tensors import (
    compare_outputs,
    copy_result,
    flat_doubles,
    nbytes,
    result_tensors,
    settle_verdicts,
    wider_tolerance,
)
from aotidoctor.worker.treatments.input_steps import TreatmentError
from aotidoctor.worker.values.follow_values import ValueWatch

# Values of the reference program.
MAX_BYTES = 4 * 1024 * 1024 * 1024
# A buffer is compared in full with this many nodes whose minimum, maximum and mean are closest to its own.
_MOST_CANDIDATES = 6
_PLACES = 2000
# Relative to the largest value: what another order of summation may cost.
_TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


@record
class ProgramValue:
    """A value of the program: node name, operator, line of the user's source, the tensor, and its ``_marks``."""

    name: str
    target: str
    where: str | None
    value: Any
    marks: tuple[float, float, float]


class Candidates:
    """Values of a program on one call."""

    def __init__(self) -> None:
        self.by_size: dict[int, list[ProgramValue]] = defaultdict(list)
        self.notes: list[str] = []
        self.decomposition_differs = False
        self._bytes = 0

    def add(self, nodes: list[ProgramValue]) -> None:
        """Add nodes; beyond ``MAX_BYTES`` they are left out, with a note."""
        for node in nodes:
            self._bytes += nbytes(node.value)
            if self._bytes > MAX_BYTES:
                self.notes.append("the values of the program are too big to be kept: some were not compared")
                return
            self.by_size[int(node.value.numel())].append(node)

    def places(self) -> list[dict[str, Any]]:
        """``target`` and ``where`` of the nodes with a known source line, each pair once."""
        known = {(node.target, node.where) for nodes in self.by_size.values() for node in nodes if node.where}
        return [{"target": target, "where": where} for target, where in sorted(known)][:_PLACES]

    def closest(self, tensor: Any) -> dict[str, Any]:
        """``matches`` (a node), ``target``, ``where``, ``error`` (how far off), ``agrees``; empty without nodes."""
        compared = self._compared(tensor)
        if not compared:
            return {}
        score, node, error = min(compared, key=lambda found: found[0])
        return {
            "matches": node.name,
            "target": node.target,
            "where": node.where,
            "error": error,
            "agrees": score <= 1.0,
        }

    def nearest(self, tensor: Any, count: int) -> list[ProgramValue]:
        """The ``count`` nodes of as many elements whose values are closest, each value once."""
        found: list[ProgramValue] = []
        for _, node, _ in sorted(self._compared(tensor), key=lambda one: one[0]):
            if not any(_score(node.value, other.value) <= 1.0 for other in found):
                found.append(node)
        return found[:count]

    def _compared(self, tensor: Any) -> list[tuple[float, ProgramValue, float]]:
        """``(score, node, largest difference)`` of the likely nodes; a score of 1 is the tolerance."""
        nodes = self.by_size.get(int(tensor.numel()), [])
        if not nodes or not tensor.numel() or tensor.dtype is torch.bool:
            return []
        ours = flat_doubles(tensor)
        marks = _marks(ours)

        def distance(node: ProgramValue) -> float:
            scale = max(map(abs, (*node.marks, *marks, 1e-30)))
            return max(abs(x - y) for x, y in zip(node.marks, marks, strict=True)) / scale

        found = []
        for node in sorted(nodes, key=distance)[:_MOST_CANDIDATES]:
            theirs, tolerance = flat_doubles(node.value), wider_tolerance(_TOLERANCE, tensor, node.value)
            score, error = _distance(ours, theirs, tolerance)
            if score > 1.0 and list(tensor.shape) != list(node.value.shape):
                # The same values in another order: a permuted layout.
                score, error = min((score, error), _distance(ours.sort().values, theirs.sort().values, tolerance))
            found.append((score, node, error))
        return found


def gather_candidates(program: Any, call: ModelCall) -> Candidates:
    """Run ``program`` (an ``ExportedProgram``) node by node on ``call``."""
    found = Candidates()
    eager, outputs = _interpret(program, call)
    found.add(eager)
    try:
        lowered, other = _interpret(program.run_decompositions(compiler_decompositions()), call)
    except Exception as error:
        found.notes.append(f"without Inductor's decompositions: {type(error).__name__}: {error}")
        return found
    if all(_score(a, b) <= 1.0 for a, b in zip(outputs, other, strict=True)):
        found.add(lowered)
    elif _is_random(program):
        found.notes.append("the program draws random numbers: its decompositions were not compared with it")
    else:
        found.decomposition_differs = True
        found.notes.append("the decomposed program gives different outputs from the program: a decomposition is wrong")
    return found


def _is_random(program: Any) -> bool:
    """Whether an operator of the graph, such as dropout in training mode, gives other values at each call."""
    tags = (getattr(node.target, "tags", ()) for node in program.graph.nodes)
    return any(torch.Tag.nondeterministic_seeded in found for found in tags)


def _interpret(program: Any, call: ModelCall) -> tuple[list[ProgramValue], list[Any]]:
    """All tensor values of the graph, and those of its outputs."""
    module = program.module()
    values: list[ProgramValue] = []

    class Recorder(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not seen by the type checker
        def run_node(self, n: Any) -> Any:
            value = super().run_node(n)
            if n.op in ("call_function", "placeholder", "get_attr"):
                values.extend(_program_values(n, value))
            return value

    flat = program_leaves(program.call_spec.in_spec, call.copy() or call)
    with torch.no_grad():
        outputs = Recorder(module).run(*flat, enable_io_processing=False)
    leaves = [leaf.clone() for leaf in pytree.tree_flatten(outputs)[0] if isinstance(leaf, torch.Tensor)]
    return values, leaves


def _program_values(node: Any, value: Any) -> list[ProgramValue]:
    """The tensors of a node's value, one or several, with operator and source line."""
    if node.op == "call_function":
        # ``aten.log`` of ``aten.log.default``.
        text = str(node.target)
        target = ".".join(text.split(".")[:2]) if "." in text else getattr(node.target, "__name__", text)
    else:
        target = "input" if node.op == "placeholder" else "weight"
    where = source_place(node)
    parts = value if isinstance(value, tuple | list) else (value,)
    tensors = [one for one in parts if isinstance(one, torch.Tensor) and one.device.type != "meta"]
    return [program_value(node.name, target, where, one) for one in tensors]


def source_place(node: Any) -> str | None:
    """``model.py:12``, the innermost line of the user's code (not PyTorch's) that made a node."""
    lines = [line.strip() for line in str(node.meta.get("stack_trace") or "").splitlines()]
    frames = [line for line in lines if line.startswith('File "')]
    if not frames:
        return None
    own = [line for line in frames if "/torch/" not in line] or frames
    file, _, rest = own[-1].removeprefix('File "').partition('", line ')
    return f"{file.rpartition('/')[2]}:{rest.partition(',')[0]}"


def program_value(name: str, target: str, where: str | None, tensor: Any) -> ProgramValue:
    """The record of a copy of ``tensor``."""
    copied = tensor.detach().clone()
    return ProgramValue(name=name, target=target, where=where, value=copied, marks=_marks(flat_doubles(copied)))


def _marks(values: Any) -> tuple[float, float, float]:
    """Smallest, largest and mean of the finite values: the same for any order of them."""
    finite = values[values.isfinite()]
    if not finite.numel():
        return (0.0, 0.0, 0.0)
    low, high = finite.aminmax()
    return (low.item(), high.item(), finite.mean().item())


def _score(a: Any, b: Any) -> float:
    """How far apart two tensors are; 1 is the tolerance."""
    return _distance(flat_doubles(a), flat_doubles(b), wider_tolerance(_TOLERANCE, a, b))[0]


def _distance(left: Any, right: Any, tolerance: float) -> tuple[float, float]:
    """``(score, largest difference)``."""
    if left.numel() != right.numel() or bool((left.isnan() != right.isnan()).any()):
        return float("inf"), float("inf")
    usable = ~left.isnan() & (left != right)
    if not bool(usable.any()):
        return 0.0, 0.0
    error = float((left[usable] - right[usable]).abs().max())
    finite = right[right.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    if tolerance == 0.0:
        return float("inf"), error
    return error / max(tolerance * scale, 1e-300), error


# One call, followed and compared.
def watch_call(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> None:
    """Call the model once, and follow its values; the facts are sent also when it dies on the way."""
    candidates, notes = reference_candidates(payload, call, channel)
    watch = ValueWatch(model.directory, candidates.closest if candidates is not None else None)
    try:
        watch.start()
    except (HooksUnavailableError, OSError) as error:
        channel.put(watch={"problem": str(error)})
        return
    channel.enter("run1")
    result = model(*call.args, **call.kwargs)
    watch.stop()
    channel.enter("scan")
    outputs = [
        {
            "path": path,
            "writer": watch.writer(leaf),
            "agrees": candidates.closest(leaf).get("agrees") if candidates is not None else None,
        }
        for path, leaf in result_tensors(result)
    ]
    notes = [*notes, *watch.problems[:10]]
    channel.put(watch=watch_result(candidates, outputs, notes, calls=watch.calls, left_out=watch.left_out))


def watch_result(candidates: Candidates | None, outputs: list[Any], notes: list[str], **counted: Any) -> dict[str, Any]:
    """The part ``watch`` of the result; ``counted`` are ``calls`` and ``left_out``."""
    return {
        "problem": None,
        **counted,
        "outputs": outputs,
        "notes": notes,
        "compared": candidates is not None,
        "places": candidates.places() if candidates is not None else [],
        "decomposition_differs": candidates is not None and candidates.decomposition_differs,
    }


def reference_candidates(payload: Run, call: ModelCall, channel: Channel) -> tuple[Candidates | None, list[str]]:
    """The reference's values; None if there is no reference, or it cannot be run node by node; and notes."""
    spec = payload.watch.reference if payload.watch is not None else None
    if not spec or user_function(spec) is not None:
        return None, []
    channel.enter("reference")
    try:
        found = gather_candidates(torch.export.load(str(channel.user_cwd / spec)), call)
    except Exception as error:
        return None, [f"the reference was not run node by node: {type(error).__name__}: {error}"]
    return found, found.notes


# Treatment of the results of one call. Per buffer, and for all buffers of the call together.
_NODES, _TRIES = 4, 8
_MAX_DIMS = 6

ModelFunction = Callable[..., Any]
PutValue = Callable[[int, Any], None]
"""Action on the nth tensor that the call wrote."""


def model_with_treatment(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> ModelFunction:
    """A model that applies the treatment whenever it is called.

    Raises:
        TreatmentError: there is no such call, or no node fits its results.
    """
    step = next(step for step in payload.treatment if step["op"] in ("put_nodes", "put_zeros"))
    channel.enter("inputs")
    if step["op"] == "put_zeros":

        def put_zeros(_: int, tensor: Any) -> None:
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.masked_fill_(~tensor.isfinite(), 0)

        return _treat_results(model, step, put_zeros)
    reference = load_reference(payload.reference or "", channel)
    if reference.program is None:
        raise TreatmentError("the reference has no nodes")
    facts, wanted = call_reference(reference, call.copy() or call)
    if wanted is None:
        raise TreatmentError(f"the reference does not take these inputs: {facts.get('error')}")
    values = _values(model, step, call, gather_candidates(reference.program, call))
    nearest: ModelFunction | None = None
    for choice in islice(values, _TRIES):
        tried = _treat_results(model, step, partial(_put_value, choice))
        nearest = nearest or tried
        given = call.copy() or call
        # A copy: outputs may lie in memory that the next call uses.
        outputs = copy_result(tried(*given.args, **given.kwargs))
        facts = compare_outputs(outputs, wanted, payload.tolerances)
        settle_verdicts(facts)
        if facts["agrees"]:
            return tried
    if nearest is None:
        raise TreatmentError("no node of the program has as many elements as what the call wrote")
    return nearest


def _treat_results(model: LoadedModel, step: dict[str, Any], put: PutValue) -> ModelFunction:
    """A model in which ``put`` changes the results of one call of the compiled code before they are read.

    It raises ``TreatmentError`` if there was no such call.
    """

    def treated(*args: Any, **kwargs: Any) -> Any:
        written, wanted = 0, int(step["call"])

        def on_written(tensor: Any) -> dict[str, Any]:
            nonlocal written
            if len(watch.calls) - 1 == wanted and watch.calls[wanted]["symbol"] == step["symbol"]:
                put(written, tensor)
                written += 1
            return {}

        watch = ValueWatch(model.directory, on_written)
        try:
            watch.start()
        except (HooksUnavailableError, OSError) as error:
            raise TreatmentError(f"calls of the package cannot be followed: {error}") from error
        try:
            return model(*args, **kwargs)
        finally:
            watch.stop()
            if not written:
                reason = watch.problems[0] if watch.problems else f"it was not call {wanted} of this run"
                raise TreatmentError(f"{step['symbol']}: {reason}")

    return treated


def _values(
    model: LoadedModel, step: dict[str, Any], call: ModelCall, candidates: Candidates
) -> Iterator[tuple[Any | None, ...]]:
    """Values to put into the buffers that the call writes, best first; None for a buffer that is right."""
    choices: list[Sequence[Any | None]] = []

    def look(_: int, tensor: Any) -> None:
        agrees = candidates.closest(tensor).get("agrees")
        fitting = [_laid_out(node, tensor) for node in candidates.nearest(tensor, _NODES)] if agrees is False else []
        choices.append([value for value in fitting if value is not None] or [None])

    given = call.copy() or call
    _treat_results(model, step, look)(*given.args, **given.kwargs)
    for rank in nearest_first([len(some) for some in choices]):
        picked = tuple(some[at] for some, at in zip(choices, rank, strict=True))
        if any(value is not None for value in picked):
            yield picked


def nearest_first(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Ranks for the buffers, each below its size: the nearest of all first, then those further off, one by one.

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


def _laid_out(node: ProgramValue, tensor: Any) -> Any | None:
    """The node's value in the shape of the buffer, its dims in the order that is nearest to the buffer's values."""
    shape, value = tuple(tensor.shape), node.value
    if value.is_complex() or tensor.is_complex():
        return None
    views = [value.reshape(shape)]
    if value.dim() <= _MAX_DIMS and sorted(value.shape) == sorted(shape):
        orders = permutations(range(value.dim()))
        views += [one for order in orders if tuple((one := value.permute(order)).shape) == shape]
    return min(views, key=lambda view: float((view.double() - tensor.double()).abs().nan_to_num(1e30).max()))


def _put_value(values: Sequence[Any | None], number: int, tensor: Any) -> None:
    value = values[number] if number < len(values) else None
    if value is not None:
        tensor.copy_(value)
