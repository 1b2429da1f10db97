"""Compare tensors with what the kernels read of them: sizes that symbols share, extents, strides of loops.

If no check in the package states sizes or strides (before torch 2.7), the kernels still show how far they read and in
which steps their loops go. A tensor *bears* a walk if each loop runs along one dim, along part of one, or along
several from end to end, which is how views, slices and reshapes of that tensor look. Some programs differ on
purpose (a reshape that cuts rows, and reads all of it), so a tensor is only suspected if in addition

* it is not contiguous, and a contiguous one of its shape bears all that this one does not: its strides; or
* the kernels leave elements of it unread, and they go through it in no other way: its shape; or
* the loop over the size that the wrapper takes from one of its dims goes along another one: its dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from aotidoctor.checks.matching.leaves import TensorPair
from aotidoctor.model.contract import Walk
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.expr import Expr, Sym, evaluate, solve, step_of
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import contiguous_stride


# Symbolic sizes, solved over all inputs.
@record
class SymbolReading:
    """Dim ``dim`` of ``pair`` has ``size`` and is compiled as ``expr``; ``value`` is what its one symbol then is.

    ``value`` is None when the size does not solve (``step`` and ``remainder`` say why) or several symbols are involved.
    """

    pair: TensorPair
    dim: int
    size: int
    expr: Expr
    symbol: str | None
    value: int | None
    step: int | None = None
    remainder: int | None = None


def readings(pairs: Iterable[TensorPair]) -> Iterator[SymbolReading]:
    """One reading per dynamic dim that is compiled in terms of symbols, in call order."""
    for pair in pairs:
        for at, (dim, size) in enumerate(zip(pair.spec.dims or (), pair.tensor.shape, strict=False)):
            expr = dim.expr
            if dim.static is not None or expr is None:
                continue
            names = sorted(expr.symbols)
            symbol = names[0] if len(names) == 1 else None
            solved = solve(expr, size) if symbol is not None else None
            line = step_of(expr) if solved is None else None
            yield SymbolReading(
                pair=pair,
                dim=at,
                size=size,
                expr=expr,
                symbol=symbol,
                value=solved[1] if solved is not None else None,
                step=None if line is None else line[0],
                remainder=None if line is None else (size - line[1]) % line[0],
            )


def agreed_values(found: Iterable[SymbolReading]) -> dict[str, int]:
    """The value of each symbol: the one that most dims have, the first one in a tie."""
    votes: dict[str, dict[int, int]] = {}
    for reading in found:
        if reading.symbol is not None and reading.value is not None:
            count = votes.setdefault(reading.symbol, {})
            count[reading.value] = count.get(reading.value, 0) + 1
    return {symbol: max(count, key=lambda value: count[value]) for symbol, count in votes.items()}


# Tensors that end before the last element that the code reads.
@record
class ShortRead:
    """A kernel reads ``pair`` as far as ``needed`` elements, ``expr`` in terms of symbols, and it has ``given``.

    ``folded``: it has enough elements, in a memory that is too short for them (expanded, or overlapping).
    ``slice``: it is exactly what one turn of the outermost loop reads, and its shape is not that of such a slice: a
    dim may be missing. ``partner`` is another input whose size the number comes from, ``symbol`` the name of that size.
    """

    pair: TensorPair
    needed: int
    given: int
    expr: Expr
    folded: bool
    slice: bool
    partner: str | None
    symbol: str | None

    @property
    def size_alone(self) -> bool:
        """Whether it has too few elements, and nothing hints at strides or at a missing dim."""
        return not (self.folded or self.slice)

    def facts(self) -> dict[str, FactValue]:
        """The facts that every finding about it carries."""
        return self.pair.facts(
            elements=self.given,
            expected_elements=self.needed,
            observed_shape=self.pair.tensor.shape,
            partner=self.partner,
            symbol=self.symbol,
        )


def short_reads(pairs: Iterable[TensorPair]) -> list[ShortRead]:
    """One per tensor that is too short.

    A number that comes from another input counts only if that input is long enough itself.
    """
    listed = [pair for pair in pairs if not pair.guessed]
    if not any(pair.spec.reads for pair in listed):
        return []
    sizes = list(readings(listed))
    values = agreed_values(sizes)
    found = [short for pair in listed if (short := _short(pair, sizes, values)) is not None]
    alone = {one.pair.path for one in found if one.partner is None}
    return [one for one in found if one.partner not in alone]


def span(tensor: TensorDesc) -> int:
    """Elements from the first one of a strided tensor to its last one; 0 of an empty one."""
    if 0 in tensor.shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride or (), strict=False))


def _short(pair: TensorPair, sizes: Sequence[SymbolReading], values: Mapping[str, int]) -> ShortRead | None:
    tensor = pair.tensor
    if pair.spec.rank is not None and all(
        dim.static is not None or dim.expr is not None for dim in pair.spec.dims or ()
    ):
        # Its sizes are known from the exported program, and each is compared.
        return None
    if tensor.stride is None or any(step < 0 for step in tensor.stride):
        return None
    for reads in pair.spec.reads:
        names = reads.extent.symbols
        if any(values.get(name, 0) < 1 for name in names):
            # An empty loop reads nothing.
            continue
        extent, given = evaluate(reads.extent, values), span(tensor)
        if extent is None or extent <= given:
            continue
        # Another input that gives one of the sizes; None if this one gives them all.
        own = {one.symbol for one in sizes if one.pair.path == pair.path}
        source = next((one for one in sizes if one.symbol in names - own), None)
        step = evaluate(reads.step, values) if reads.step is not None else None
        return ShortRead(
            pair=pair,
            needed=extent,
            given=min(given, tensor.numel),
            expr=reads.extent,
            folded=tensor.numel >= extent,
            slice=step == tensor.numel and tensor.shape[:1] != (1,),
            partner=source.pair.path if source is not None else None,
            symbol=source.symbol if source is not None else None,
        )
    return None


# Tensors whose shape or strides the loops do not follow. A dim as (size, stride), outermost first.
Dims = tuple[tuple[int, int], ...]


@record
class WalkSteps:
    """A walk in numbers: ``turns`` as (trips, step), outermost first; ``parted`` if divided as a buffer is."""

    start: int
    turns: Dims
    parted: bool

    @property
    def end(self) -> int:
        """The number of elements up to the last one that it reads."""
        return 1 + self.start + sum((trips - 1) * step for trips, step in self.turns)

    def __str__(self) -> str:
        """The words for a sentence: ``(3, 7) with strides (7, 1)``."""
        sizes, strides = ([one[at] for one in self.turns] for at in (0, 1))
        return f"({', '.join(map(str, sizes))}) with strides ({', '.join(map(str, strides))})"


@record
class Misfit:
    """``pair`` does not bear ``steps``; ``kind`` is ``stride``, ``shape`` or ``rank``, what it differs in."""

    pair: TensorPair
    steps: WalkSteps
    kind: str

    @property
    def dim(self) -> int | None:
        """The only dim whose size differs from the loops; None if none or several differ."""
        sizes = [trips for trips, _ in self.steps.turns]
        shape = self.pair.tensor.shape
        other = [at for at, size in enumerate(shape) if len(sizes) == len(shape) and size != sizes[at]]
        return other[0] if len(other) == 1 else None

    def facts(self) -> dict[str, FactValue]:
        """The facts that every finding about it carries."""
        return self.pair.facts(
            observed_shape=self.pair.tensor.shape,
            observed_stride=self.pair.tensor.stride or (),
            walked_sizes=tuple(trips for trips, _ in self.steps.turns),
            walked_strides=tuple(step for _, step in self.steps.turns),
        )


def misfits(pairs: Iterable[TensorPair]) -> list[Misfit]:
    """At most one per tensor; none for a tensor that is too short, which has its own finding."""
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
        contiguous = all(bears(plain, steps) for steps in odd)
        return Misfit(pair=pair, steps=_most_telling(odd), kind="stride") if contiguous else None
    along = _along_another(pair, values)
    if along is not None:
        return Misfit(pair=pair, steps=along, kind="rank" if len(along.turns) != len(tensor.shape) else "shape")
    complete = pair.spec.walked and len(walks) == len(pair.spec.walks)
    if not odd or not complete or max(steps.end for steps in walks) >= tensor.numel:
        return None
    steps = _most_telling(odd)
    return Misfit(pair=pair, steps=steps, kind="shape" if len(steps.turns) == len(tensor.shape) else "rank")


def _most_telling(odd: Sequence[WalkSteps]) -> WalkSteps:
    """The walk with the most loops, and of those the one that reaches furthest."""
    return max(odd, key=lambda steps: (len(steps.turns), steps.end))


def _dims(shape: Sequence[int], strides: Sequence[int]) -> Dims:
    """The dims that a walk can go along."""
    return tuple((size, step) for size, step in zip(shape, strides, strict=True) if size > 1 and step > 0)


def _numbers(walk: Walk, values: Mapping[str, int]) -> WalkSteps | None:
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
    loops = sorted(((trips, step) for trips, step in turns if trips > 1), key=lambda one: -one[1])
    return WalkSteps(start=walk.start, turns=tuple(loops), parted=parted)


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


def bears(dims: Dims, steps: WalkSteps, *, reordered: bool = True) -> bool:
    """Whether views, slices and reshapes that cut no row go through a tensor with these dims in these steps.

    ``reordered``: the dims may have been put in the order of the memory first, and joined then.
    """
    if steps.start:
        # Its start limits how far it may go, which is not computed.
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


def _along_another(pair: TensorPair, values: Mapping[str, int]) -> WalkSteps | None:
    """A walk in which the loop over the size of one of the tensor's dims stays within that dim, as no diagonal does."""
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
        name = dim.expr.name
        alone = sum(other.expr is not None and name in other.expr.symbols for other in pair.spec.dims or ()) == 1
        walks = (any(turn.trips == dim.expr for turn in walk.turns) for walk in pair.spec.walks)
        within = loops and all(step is not None and step < strides[at] for _, step in loops)
        if within and alone and pair.spec.walked and all(walks):
            return _numbers(loops[0][0], values)
    return None
