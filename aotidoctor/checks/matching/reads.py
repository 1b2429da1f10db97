"""Tensors that end before the compiled code has read what it reads of them, where no check states their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aotidoctor.checks.matching.pairs import TensorPair
from aotidoctor.checks.matching.symbols import Reading, agreed_values, readings
from aotidoctor.model.contract import Reads
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.expr import Expr, evaluate
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import record


@record
class ShortRead:
    """A kernel reads ``pair`` as far as ``needed`` elements, ``expr`` in terms of symbols, and it has ``given``.

    ``folded`` tells that it has elements enough, in a memory that is too short for them (expanded, or overlapping).
    ``slice`` tells that it is just what one turn of the outermost loop reads, and is no such slice by its shape: a dim
    may be missing. ``partner`` is another input whose size the number comes from, ``symbol`` the name of that size.
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
        """It has too few elements, and nothing hints at strides or at a missing dim."""
        return not (self.folded or self.slice)

    def facts(self) -> dict[str, FactValue]:
        """What every finding about it carries."""
        return self.pair.facts(
            elements=self.given,
            expected_elements=self.needed,
            observed_shape=self.pair.tensor.shape,
            partner=self.partner,
            symbol=self.symbol,
        )


def short_reads(pairs: Iterable[TensorPair]) -> list[ShortRead]:
    """One per tensor that is too short.

    A number that comes from another input counts only where that one is long enough itself.
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


def _short(pair: TensorPair, sizes: Sequence[Reading], values: Mapping[str, int]) -> ShortRead | None:
    tensor = pair.tensor
    if pair.spec.rank is not None and all(
        dim.static is not None or dim.expr is not None for dim in pair.spec.dims or ()
    ):
        # Its sizes are known by now, from the exported program, and each is compared.
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
        source = _source(pair, names, sizes)
        return ShortRead(
            pair=pair,
            needed=extent,
            given=min(given, tensor.numel),
            expr=reads.extent,
            folded=tensor.numel >= extent,
            slice=_is_slice(tensor, reads, values),
            partner=source.pair.path if source is not None else None,
            symbol=source.symbol if source is not None else None,
        )
    return None


def _is_slice(tensor: TensorDesc, reads: Reads, values: Mapping[str, int]) -> bool:
    step = evaluate(reads.step, values) if reads.step is not None else None
    return step == tensor.numel and tensor.shape[:1] != (1,)


def _source(pair: TensorPair, names: frozenset[str], sizes: Sequence[Reading]) -> Reading | None:
    """Where another input gives one of the sizes; None where this one gives them all."""
    own = {one.symbol for one in sizes if one.pair.path == pair.path}
    return next((one for one in sizes if one.symbol in names - own), None)
