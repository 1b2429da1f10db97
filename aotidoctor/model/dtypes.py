"""Names and sizes of element types, as torch spells them without its prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ITEMSIZE: Mapping[str, int] = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
    "quint8": 1,
    "qint8": 1,
    "qint32": 4,
    "quint4x2": 1,
    "quint2x4": 1,
    "bits8": 1,
    "bits16": 2,
    "bits1x8": 1,
    "bits2x4": 1,
    "bits4x2": 1,
    **{f"{sign}int{width}": 1 for sign in ("", "u") for width in range(1, 8)},
}

QUANTIZED = frozenset({"quint8", "qint8", "qint32", "quint4x2", "quint2x4"})

SAFETENSORS_DTYPES: Mapping[str, str] = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}

# Of reduced precision: they overflow where others would not.
HALF = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def index_at(position: int, shape: Sequence[int]) -> list[int]:
    """The index of the element at ``position`` in row-major order."""
    index = []
    for size in reversed(shape):
        index.append(position % size)
        position //= size
    return index[::-1]


def contiguous_stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements; sizes 0 and 1 count as 1, as torch does it."""
    stride: list[int] = []
    step = 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))


def is_row_major(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether these are the strides of a tensor that was just made; a dim of size 1 may have any."""
    steps = zip(shape, stride, contiguous_stride(shape), strict=False)
    return len(shape) == len(stride) and all(size == 1 or step == plain for size, step, plain in steps)
