"""Tensors that the loops of the kernels do not go through as their shape and strides have it.

Where no check states strides (before torch 2.7), the loops still say in which steps they go. A tensor *bears* a walk if
each loop runs along one dim, along part of one, or along several from end to end, which is how views, slices and
reshapes of that tensor look. Some programs do otherwise on purpose (a reshape that cuts rows, and reads all of it), so
a tensor is only suspected where besides

* it is not contiguous, and a contiguous one of its shape bears all that this one does not: its strides; or
* the kernels leave elements of it unread, and they go through it in no other way: its shape; or
* the loop over the size that the wrapper takes from one of its dims goes along another one: its dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aotidoctor.checks.matching.pairs import TensorPair
from aotidoctor.checks.matching.reads import short_reads
from aotidoctor.checks.matching.symbols import agreed_values, readings
from aotidoctor.model.contract import Walk
from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.expr import Sym, evaluate
from aotidoctor.model.record import record

# A dim as (size, stride), outermost first.
Dims = tuple[tuple[int, int], ...]


@record
class Steps:
    """A walk in numbers: ``turns`` as (trips, step), outermost first; ``parted`` if divided as a buffer is."""

    start: int
    turns: Dims
    parted: bool

    @property
    def end(self) -> int:
        """The number of elements up to the last one that it reads."""
        return 1 + self.start + sum((trips - 1) * step for trips, step in self.turns)

    def __str__(self) -> str:
        """As a sentence names it: ``(3, 7) with strides (7, 1)``."""
        sizes, strides = ([one[at] for one in self.turns] for at in (0, 1))
        return f"({', '.join(map(str, sizes))}) with strides ({', '.join(map(str, strides))})"


@record
class Misfit:
    """``pair`` does not bear ``steps``; ``kind`` is ``stride``, ``shape`` or ``rank``, what it differs in."""

    pair: TensorPair
    steps: Steps
    kind: str

    @property
    def dim(self) -> int | None:
        """The only dim with another size than the loops have, where the others are the same."""
        sizes = [trips for trips, _ in self.steps.turns]
        shape = self.pair.tensor.shape
        other = [at for at, size in enumerate(shape) if len(sizes) == len(shape) and size != sizes[at]]
        return other[0] if len(other) == 1 else None

    def facts(self) -> dict[str, FactValue]:
        """What every finding about it carries."""
        return self.pair.facts(
            observed_shape=self.pair.tensor.shape,
            observed_stride=self.pair.tensor.stride or (),
            walked_sizes=tuple(trips for trips, _ in self.steps.turns),
            walked_strides=tuple(step for _, step in self.steps.turns),
        )


def misfits(pairs: Iterable[TensorPair]) -> list[Misfit]:
    """At most one per tensor; none of one that ends before it is read, which says so itself."""
    listed = [pair for pair in pairs if not pair.guessed]
    if not any(pair.spec.walks for pair in listed):
        return []
    short = {one.pair.path for one in short_reads(listed)}
    values = agreed_values(list(readings(listed)))
    found = (_misfit(pair, values) for pair in listed if pair.spec.walks and pair.path not in short)
    return [one for one in found if one is not None]


def _misfit(pair: TensorPair, values: Mapping[str, int]) -> Misfit | None:
    tensor = pair.tensor
    if tensor.stride is None or tensor.numel == 0 or any(step < 0 for step in tensor.stride):
        return None
    walks = [steps for walk in pair.spec.walks if (steps := _numbers(walk, values)) is not None]
    given = _dims(tensor.shape, tensor.stride)
    plain = _dims(tensor.shape, contiguous_stride(tensor.shape))
    odd = [steps for steps in walks if not bears(given, steps, reordered=not (steps.parted and steps.turns == plain))]
    if odd and given != plain:
        meant = all(bears(plain, steps) for steps in odd)
        return Misfit(pair=pair, steps=_told(odd), kind="stride") if meant else None
    along = _along_another(pair, values)
    if along is not None:
        return Misfit(pair=pair, steps=along, kind="rank" if len(along.turns) != len(tensor.shape) else "shape")
    complete = pair.spec.walked and len(walks) == len(pair.spec.walks)
    if not odd or not complete or max(steps.end for steps in walks) >= tensor.numel:
        return None
    told = _told(odd)
    return Misfit(pair=pair, steps=told, kind="shape" if len(told.turns) == len(tensor.shape) else "rank")


def _told(odd: Sequence[Steps]) -> Steps:
    """The one that says most."""
    return max(odd, key=lambda steps: (len(steps.turns), steps.end))


def _dims(shape: Sequence[int], strides: Sequence[int]) -> Dims:
    """Those that a walk can go along."""
    return tuple((size, step) for size, step in zip(shape, strides, strict=True) if size > 1 and step > 0)


def _numbers(walk: Walk, values: Mapping[str, int]) -> Steps | None:
    """The walk with these sizes, its loops divided by the dims of the buffer beside it."""
    turns: list[tuple[int, int]] = []
    form = [
        (evaluate(size, values), evaluate(step, values)) for size, step in zip(walk.sizes, walk.strides, strict=True)
    ]
    dims = [(size, step) for size, step in form if size is not None and step is not None]
    known, parted = bool(dims) and len(dims) == len(form), True
    for turn in walk.turns:
        trips, step = evaluate(turn.trips, values), evaluate(turn.step, values)
        beside = evaluate(turn.beside, values) if turn.beside is not None else None
        if trips is None or step is None or trips < 1:
            return None
        parts = _parts(trips, beside, dims) if known and beside else None
        parted = parted and parts is not None
        turns += [(part, step * ahead) for part, ahead in parts or [(trips, 1)]]
    kept = sorted(((trips, step) for trips, step in turns if trips > 1), key=lambda one: -one[1])
    return Steps(start=walk.start, turns=tuple(kept), parted=parted)


def _parts(trips: int, beside: int, dims: Sequence[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """A loop over several dims of the buffer as one per dim: (trips, turns of the loop for one step)."""
    parts, left, ahead = [], trips, 1
    for size, step in sorted((one for one in dims if one[0] > 1), key=lambda one: one[1]):
        if left > 1 and step == beside * ahead:
            part = min(size, left)
            if left % part:
                return None
            parts.append((part, ahead))
            left, ahead = left // part, ahead * part
    return parts if left == 1 else None


def bears(dims: Dims, steps: Steps, *, reordered: bool = True) -> bool:
    """Whether a tensor with these dims is gone through so by views, slices and reshapes that cut no row.

    ``reordered``: the dims may have been put in the order of the memory first, and joined then.
    """
    if steps.start:
        # Where it starts decides how far it may go: not worked out.
        return True
    used: dict[int, int] = {}
    by_memory = tuple(sorted(dims, key=lambda one: -one[1])) if reordered else dims
    return all(
        _along(dims, *turn, used) or (by_memory != dims and _along(by_memory, *turn, None)) for turn in steps.turns
    )


def _along(dims: Dims, trips: int, step: int, used: dict[int, int] | None) -> bool:
    """Whether one loop goes along a dim, or along several from the end of the last one.

    ``used`` counts how far it goes in a dim; None asks for several only.
    """
    for at in range(len(dims) - 1, -1, -1):
        size, stride = dims[at]
        if step % stride or step // stride >= size:
            continue
        ahead = step // stride
        if used is not None and used.get(at, 0) + (trips - 1) * ahead < size:
            used[at] = used.get(at, 0) + (trips - 1) * ahead
            return True
        inner = size // ahead
        if size % ahead == 0 and trips > inner and _across(dims, at, trips, inner):
            return True
    return False


def _across(dims: Dims, at: int, trips: int, inner: int) -> bool:
    """Whether the loop fills dim ``at`` in ``inner`` turns and goes on along those outside of it."""
    while trips > inner:
        size, stride = dims[at]
        if trips % inner or at == 0 or dims[at - 1][1] != size * stride:
            return False
        trips, at = trips // inner, at - 1
        inner = dims[at][0]
    return True


def _along_another(pair: TensorPair, values: Mapping[str, int]) -> Steps | None:
    """A walk in which the loop over the size of one of its own dims goes within that dim, as no diagonal does."""
    tensor = pair.tensor
    strides = tensor.stride or ()
    for at, dim in enumerate(pair.spec.dims or ()):
        if not isinstance(dim.expr, Sym) or dim.static is not None or at >= len(strides) or tensor.shape[at] < 2:
            continue
        loops = [
            (walk, evaluate(turn.step, values))
            for walk in pair.spec.walks
            for turn in walk.turns
            if turn.trips == dim.expr
        ]
        if loops and all(step is not None and step < strides[at] for _, step in loops) and _only(pair, dim.expr):
            return _numbers(loops[0][0], values)
    return None


def _only(pair: TensorPair, symbol: Sym) -> bool:
    """Whether the size is that of one dim, and each walk has a loop over it alone."""
    dims = [dim for dim in pair.spec.dims or () if dim.expr is not None and symbol.name in dim.expr.symbols]
    walks = (any(turn.trips == symbol for turn in walk.turns) for walk in pair.spec.walks)
    return len(dims) == 1 and pair.spec.walked and all(walks)
