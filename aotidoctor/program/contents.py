"""The bytes of a package's constants against the program's, a piece at a time: two gigabytes cost time, not memory.

The facts of a pair are those of ``worker.weight_differences``, as far as they can be had without torch:
``flipped-bit``, ``few`` and ``values``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod

from aotidoctor.model.dtypes import ITEMSIZE, index_at, is_row_major
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.program_archive import StoredTensor
from aotidoctor.readers.inputs.values import decode

CHUNK = 1 << 20
# Elements that are looked at one by one: where the layouts differ, and where pieces are not equal.
MAX_SINGLE = 1 << 22
FEW = 8


@dataclass(slots=True)
class _Tally:
    """What differs so far. ``looked`` counts elements of pieces that are not equal."""

    differing: int = 0
    looked: int = 0
    places: list[tuple[int, bytes, bytes]] = field(default_factory=list)


def compare_contents(ours: StoredTensor, theirs: StoredTensor) -> JsonObject | str:
    """Facts of one pair of one dtype and shape; a text that says why they cannot be compared."""
    if ours.content is None or theirs.content is None:
        return ours.problem or theirs.problem or "no bytes to compare"
    if ours.dtype is None or ours.shape is None or ours.dtype not in ITEMSIZE:
        return f"dtype {ours.dtype} of an unknown size"
    if _numel(ours) == 0:
        return {"name": ours.fqn, "equal": True, "what": None}
    tally = _Tally()
    try:
        for piece in _pieces(ours, theirs):
            _look(*piece, ITEMSIZE[ours.dtype], tally)
            if tally.looked > MAX_SINGLE:
                break
    except _Unreadable as error:
        return str(error)
    return _facts(ours, tally)


class _Unreadable(Exception):  # noqa: N818 - a control-flow signal
    """There is nothing to compare after all."""


def _pieces(ours: StoredTensor, theirs: StoredTensor) -> Iterator[tuple[int, bytes, bytes]]:
    """Index of the first element, and the bytes of both, element by element in the same order."""
    size = ITEMSIZE[ours.dtype or ""]
    if _is_contiguous(ours) and _is_contiguous(theirs):
        total = _numel(ours) * size
        for at in range(0, total, CHUNK):
            length = min(CHUNK, total - at)
            yield (
                at // size,
                _read(ours, ours.offset * size + at, length),
                _read(theirs, theirs.offset * size + at, length),
            )
        return
    count = _numel(ours)
    if count > MAX_SINGLE:
        raise _Unreadable(f"{count} elements in a different order: too many to compare one by one")
    for at, (one, other) in enumerate(zip(_places(ours), _places(theirs), strict=True)):
        yield at, _read(ours, one * size, size), _read(theirs, other * size, size)


def _read(tensor: StoredTensor, start: int, length: int) -> bytes:
    data = tensor.content.read_at(start, length) if tensor.content is not None else b""
    if len(data) < length:
        raise _Unreadable(f"the storage ends after {tensor.content.size if tensor.content else 0} bytes")
    return data


def _places(tensor: StoredTensor) -> Iterator[int]:
    """Positions in the storage, in row-major order."""
    shape, stride = tensor.shape or (), tensor.stride or ()
    if len(stride) != len(shape):
        raise _Unreadable("its strides are unknown")
    for index in product(*map(range, shape)):
        yield tensor.offset + sum(at * step for at, step in zip(index, stride, strict=True))


def _is_contiguous(tensor: StoredTensor) -> bool:
    return tensor.stride is None or is_row_major(tensor.shape or (), tensor.stride)


def _numel(tensor: StoredTensor) -> int:
    return prod(tensor.shape or ())


def _look(first: int, one: bytes, other: bytes, size: int, tally: _Tally) -> None:
    if one == other:
        return
    # Halves, until the pieces that differ are small: one bit in a gigabyte must not cost a gigabyte of steps.
    count = len(one) // size
    if count > 64:
        middle = count // 2 * size
        _look(first, one[:middle], other[:middle], size, tally)
        _look(first + count // 2, one[middle:], other[middle:], size, tally)
        return
    tally.looked += count
    for at in range(count):
        left, right = one[at * size : (at + 1) * size], other[at * size : (at + 1) * size]
        if left != right:
            tally.differing += 1
            if len(tally.places) <= FEW:
                tally.places.append((first + at, left, right))


def _facts(ours: StoredTensor, tally: _Tally) -> JsonObject:
    shape = list(ours.shape or ())
    told: JsonObject = {"name": ours.fqn, "dtype": ours.dtype, "shape": [*shape]}
    if not tally.differing:
        return {**told, "equal": True, "what": None}
    count = _numel(ours)
    elements = [_element(ours, *place) for place in tally.places[:FEW]]
    few = tally.differing <= FEW and (tally.differing == 1 or tally.differing * 2 <= count)
    single = few and all(isinstance(bits := item["bits"], list) and len(bits) == 1 for item in elements)
    return {
        **told,
        "equal": False,
        "what": "flipped-bit" if single else "few" if few else "values",
        "differing": tally.differing,
        "numel": count,
        "share": tally.differing / count if tally.looked <= MAX_SINGLE else tally.differing / tally.looked,
        "elements": [*elements],
    }


def _element(ours: StoredTensor, at: int, left: bytes, right: bytes) -> JsonObject:
    apart = int.from_bytes(left, "little") ^ int.from_bytes(right, "little")
    index: list[JsonValue] = [*index_at(at, ours.shape or ())]
    bits: list[JsonValue] = [bit for bit in range(len(left) * 8) if apart >> bit & 1]
    return {"index": index, "observed": _value(ours.dtype, left), "expected": _value(ours.dtype, right), "bits": bits}


def _value(dtype: str | None, data: bytes) -> JsonValue:
    """The number; of dtypes that Python has no name for, the bytes."""
    values = decode(dtype or "", data)
    if values is None:
        return f"0x{int.from_bytes(data, 'little'):0{len(data) * 2}x}"
    return bool(values[0]) if dtype == "bool" else values[0]
