"""Types of elements by the names that signatures have for them (``fp32``): bytes, NumPy's names, names in the text."""

from __future__ import annotations

from collections.abc import Mapping

Interval = tuple[int, int]


class DtypeName(str):
    """A type as the value of a parameter, by its name (``fp16``)."""

    __slots__ = ()


# From the narrowest on, as results are promoted; NumPy has no bfloat16.
_TABLE = (
    ("i1", 1, "bool", "int1"), ("i8", 1, "int8", "int8"), ("u8", 1, "uint8", "uint8"), ("i16", 2, "int16", "int16"),
    ("u16", 2, "uint16", "uint16"), ("i32", 4, "int32", "int32"), ("u32", 4, "uint32", "uint32"),
    ("i64", 8, "int64", "int64"), ("u64", 8, "uint64", "uint64"), ("fp16", 2, "float16", "float16"),
    ("bf16", 2, None, "bfloat16"), ("fp32", 4, "float32", "float32"), ("fp64", 8, "float64", "float64"),
)  # fmt: skip
SIZES: Mapping[str, int] = {name: size for name, size, _, _ in _TABLE}
NUMPY: Mapping[str, str] = {name: numpy for name, _, numpy, _ in _TABLE if numpy is not None}
BY_TEXT: Mapping[str, str] = {text: name for name, _, _, text in _TABLE}
ORDER = tuple(NUMPY)
INT32: Interval = (-(1 << 31), (1 << 31) - 1)


def limits(dtype: str) -> Interval | None:
    """The least and the greatest number of a type of whole numbers up to 32 bits; None for others."""
    if dtype == "i1":
        return 0, 1
    bits = 8 * SIZES.get(dtype, 8)
    if dtype[0] not in "iu" or bits > 32:
        return None
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
