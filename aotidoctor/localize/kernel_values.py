"""The values that a watched run saw (``result["watch"]``), read into the vocabulary: one record per computing call.

Buffers get the names of wrapper.cpp (``buf0``; inputs by the user's path, constants by their original name) where the
calls of the run are those of the source, in its order; else the names of the kernel's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from aotidoctor.localize.kernel_text import is_overwritten
from aotidoctor.localize.timeline import name_of
from aotidoctor.model.answers import told
from aotidoctor.model.answers.watched import WatchedCall, WatchedTensor, Watching
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.localization import BufferValues, KernelValues
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.model.trace import TracedCall


@record
class Watched:
    """A watched run.

    ``written_by`` maps each output path to the number of the call that wrote it (None: an input). ``good`` are the
    paths of outputs that have the values of a node of the reference. ``places`` are the operators of the reference with
    their source lines.
    """

    calls: tuple[KernelValues, ...] = ()
    written_by: tuple[tuple[str, int | None], ...] = ()
    good: frozenset[str] = frozenset()
    compared: bool = False
    decomposition_differs: bool = False
    left_out: int = 0
    places: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def writers(self) -> tuple[int, ...]:
        """The numbers of the calls that wrote the outputs."""
        return tuple(number for _, number in self.written_by if number is not None)


def read_watched(case: Case, outcome: Outcome) -> Watched:
    """What the run saw; ``problem`` says why it saw nothing."""
    found = told(Watching, outcome.result).watch
    if found is None:
        return Watched(problem="the run ended before its values were reported")
    if found.problem:
        return Watched(problem=found.problem)
    symbols = [TracedCall(symbol=one.symbol, argument=one.argument or 0, at=0.0) for one in found.calls]
    static = _static_calls(case, symbols)
    # A kernel is often called many times, and its text says the same each time.
    overwrites = cache(partial(is_overwritten, case))
    return Watched(
        calls=tuple(
            _call(case, index, record, symbols[index], static[index] if static else None, overwrites=overwrites)
            for index, record in enumerate(found.calls)
        ),
        written_by=tuple((item.path, item.writer) for item in found.outputs),
        good=frozenset(item.path for item in found.outputs if item.agrees),
        compared=found.compared,
        decomposition_differs=found.decomposition_differs,
        left_out=found.left_out,
        places=tuple((item.target, item.where) for item in found.places),
        notes=found.notes,
    )


def _static_calls(case: Case, calls: Sequence[TracedCall]) -> tuple[KernelCall, ...]:
    """The calls of the source, if the run made exactly those."""
    static = case.contract.kernels if case.contract is not None else ()
    names = [name_of(case, call) for call in calls]
    known = [name_of(case, call) if item.kind == "custom" else item.name for item, call in zip(static, calls)]  # noqa: B905 - of unequal length they differ anyway
    return static if len(static) == len(calls) and names == known else ()


def _call(
    case: Case,
    index: int,
    record: WatchedCall,
    call: TracedCall,
    static: KernelCall | None,
    *,
    overwrites: Callable[[str, str], bool],
) -> KernelValues:
    name = name_of(case, call)
    read = [item for item in record.reads if not _is_taken_over(item, name, overwrites)]
    sides = (("in", read), ("out", record.writes))
    return KernelValues(
        index=index,
        name=name,
        kind=call.kind.value,
        buffers=tuple(_buffer(case, role, item, static) for role, found in sides for item in found),
    )


def _is_taken_over(item: WatchedTensor, kernel: str, overwrites: Callable[[str, str], bool]) -> bool:
    """A buffer whose memory the kernel writes to without having read what was in it."""
    return item.name.startswith("in_out") and overwrites(kernel, item.name)


def _buffer(case: Case, role: str, item: WatchedTensor, static: KernelCall | None) -> BufferValues:
    return BufferValues(
        name=_name(case, item, static),
        role=role,
        dtype=item.dtype,
        shape=tuple(size or 0 for size in item.shape or ()),
        nan=item.nan or 0,
        inf=item.inf or 0,
        low=_float(item.min),
        high=_float(item.max),
        mean=_float(item.mean),
        error=_float(item.error),
        matches=item.matches,
        target=item.target,
        where=item.where,
        agrees=item.agrees,
        written_by=item.writer,
        seen=not item.constant,
    )


def _float(value: float | None) -> float | None:
    """Statistics of integers come as integers."""
    return None if value is None else float(value)


def _name(case: Case, item: WatchedTensor, static: KernelCall | None) -> str:
    parameter, position = item.name or "?", item.position
    if static is None or position is None or not 0 <= position < len(static.arguments):
        return parameter
    return user_name(case, static.arguments[position]) or parameter


def user_name(case: Case, generated: str) -> str:
    """The user's name of a tensor of wrapper.cpp: path of an input, original name of a constant; else as it is."""
    # What an operator gives back is handed over by the address of its handle.
    generated = generated.removeprefix("&").removesuffix("_handle")
    if case.contract is None:
        return generated
    leaf = next((leaf.path for leaf in case.contract.leaves if leaf.generated_name == generated), None)
    constant = next((one.original_fqn for one in case.contract.constants if one.name == generated), None)
    return leaf or constant or generated
