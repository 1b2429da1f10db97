"""Does a tensor fit a leaf of the call spec, and would two arguments fit if they were swapped?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from aotidoctor.checks.matching.overlay import Pair
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.inputs import LeafValue, PlainValue, TensorDesc

# More misplaced arguments than this are another call, not a wrong order.
MOST_MISPLACED = 6
# One byte per element and the same two values: the kernel reads a 0/1 mask right whichever of them it is.
MASK_DTYPES = frozenset({"bool", "uint8", "int8"})


def is_mask_for(spec_dtype: str, tensor: TensorDesc) -> bool:
    """True when a one-byte 0/1 mask stands in for another one-byte type (same bytes, right answer)."""
    if tensor.dtype == spec_dtype or not {tensor.dtype, spec_dtype} <= MASK_DTYPES:
        return False
    return tensor.dtype == "bool" or tensor.stats is None or tensor.stats.all_zero_or_one


def dtype_fits(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """The dtype is the expected one, or a harmless stand-in."""
    return spec.dtype is None or tensor.dtype == spec.dtype or is_mask_for(spec.dtype, tensor)


def rank_fits(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """The number of dims is the expected one, or unknown."""
    return spec.rank is None or len(tensor.shape) == spec.rank


def one_element(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """One element either way: the same bytes whatever the rank."""
    if tensor.numel != 1 or spec.rank is None:
        return False
    return spec.rank == 0 or all(dim.static == 1 for dim in spec.dims or (None,) if dim is not None)


def static_mismatches(spec: LeafSpec, tensor: TensorDesc) -> list[tuple[int, int, int]]:
    """``(dim, observed, expected)`` for each static dim that differs; only as many dims as both have."""
    return [
        (at, size, dim.static)
        for at, (dim, size) in enumerate(zip(spec.dims or (), tensor.shape, strict=False))
        if dim.static is not None and dim.static != size
    ]


def fits(spec: LeafSpec, value: LeafValue) -> bool:
    """It could be this argument: a tensor of its dtype, rank and static dims, or a plain value for a constant."""
    match value:
        case PlainValue():
            return spec.input_index is None
        case TensorDesc():
            if spec.input_index is None:
                return False
            rank_ok = rank_fits(spec, value) or one_element(spec, value)
            return dtype_fits(spec, value) and rank_ok and not static_mismatches(spec, value)


def swapped_pairs(pairs: Sequence[Pair]) -> list[tuple[Pair, Pair]]:
    """``(pair, the pair whose value belongs here)`` for arguments that fit each other's places. One answer only.

    Two swapped arguments come as one tuple; more that were rotated come as one tuple each.
    """
    misfits = [pair for pair in pairs if not fits(pair.spec, pair.value) and pair.spec.kind != "unknown"]
    if not misfits:
        return _crossed_ranks(pairs)
    if not 2 <= len(misfits) <= MOST_MISPLACED:
        return []
    places = [[at for at, other in enumerate(misfits) if fits(pair.spec, other.value)] for pair in misfits]
    answers = list(islice(_assignments(places, 0, frozenset()), 2))
    if len(answers) == 1:
        return _moves(misfits, answers[0])
    return _couples(misfits) if not answers else []


def _crossed_ranks(pairs: Sequence[Pair]) -> list[tuple[Pair, Pair]]:
    """Two tensors of one element, where a rank alone does no harm, that have exactly each other's ranks."""
    odd = [
        pair
        for pair in pairs
        if isinstance(pair.value, TensorDesc) and pair.spec.kind != "unknown" and not rank_fits(pair.spec, pair.value)
    ]
    if len(odd) != 2:
        return []
    first, second = odd
    crossed = all(
        isinstance(value, TensorDesc) and fits(spec, value) and rank_fits(spec, value)
        for spec, value in ((first.spec, second.value), (second.spec, first.value))
    )
    return [(first, second)] if crossed else []


def _assignments(places: Sequence[Sequence[int]], at: int, taken: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """All ways to give each place a value of its own that fits."""
    if at == len(places):
        yield ()
        return
    for choice in places[at]:
        if choice not in taken:
            for rest in _assignments(places, at + 1, taken | {choice}):
                yield (choice, *rest)


def _moves(misfits: Sequence[Pair], answer: Sequence[int]) -> list[tuple[Pair, Pair]]:
    found = []
    for at, choice in enumerate(answer):
        if answer[choice] == at and choice < at:
            continue
        found.append((misfits[at], misfits[choice]))
    return found


def _couples(misfits: Sequence[Pair]) -> list[tuple[Pair, Pair]]:
    """Two that fit each other's places where something else is wrong, too."""
    found = [
        (first, second)
        for first, second in combinations(misfits, 2)
        if fits(first.spec, second.value) and fits(second.spec, first.value)
    ]
    paths = [pair.path for swap in found for pair in swap]
    return [swap for swap in found if all(paths.count(pair.path) == 1 for pair in swap)]
