"""How c10 and generated code name dtypes and devices: by numbers, by names of C++, by those of Triton."""

from __future__ import annotations

# c10::ScalarType, in its order of declaration (torch/headeronly/core/ScalarType.h).
SCALAR_TYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
    "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4",
    "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16",
    "uint32", "uint64",
)  # fmt: skip
# Its enumerators, which messages and wrappers write as at::kHalf.
SCALAR_NAMES = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16",
    "Float": "float32", "Double": "float64", "ComplexHalf": "complex32", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "Bool": "bool", "BFloat16": "bfloat16", "QInt8": "qint8", "QUInt8": "quint8",
    "QInt32": "qint32", "QUInt4x2": "quint4x2", "QUInt2x4": "quint2x4", "UInt16": "uint16", "UInt32": "uint32",
    "UInt64": "uint64",
    **{name.capitalize(): name for name in (
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )},
}  # fmt: skip
# torch._export.serde.schema.ScalarType, in whose module an import costs more than a run.
EXPORTED_TYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu",
    34: "uint32", 35: "uint64",
}  # fmt: skip
# Types of elements, in C++ without their namespaces and in Triton's signatures.
_ELEMENTS = {
    "bool": ("bool", "i1"),
    "uint8": ("uint8_t", "unsigned char", "u8"),
    "int8": ("int8_t", "signed char", "i8"),
    "int16": ("int16_t", "short", "i16"),
    "uint16": ("uint16_t", "u16"),
    "int32": ("int32_t", "int", "i32"),
    "uint32": ("uint32_t", "u32"),
    "int64": ("int64_t", "long", "i64"),
    "uint64": ("uint64_t", "u64"),
    "float16": ("half", "Half", "fp16"),
    "bfloat16": ("bfloat16", "BFloat16", "bf16"),
    "float32": ("float", "fp32"),
    "float64": ("double", "fp64"),
    "complex64": ("complex<float>",),
    "complex128": ("complex<double>",),
}
_BY_ELEMENT = {name: dtype for dtype, names in _ELEMENTS.items() for name in names}
# c10::DeviceType.
DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 14: "meta"}


def scalar_type(number: int) -> str | None:
    """The dtype with this number; None of one that is not known."""
    return SCALAR_TYPES[number] if 0 <= number < len(SCALAR_TYPES) else None


def element_dtype(name: str) -> str | None:
    """``float16`` of ``at::Half``, ``half`` or ``fp16``; None of a type that is not known."""
    return _BY_ELEMENT.get(name.rpartition("::")[2] if "<" not in name else name.partition("::")[2])
