"""The numbers by which c10 knows dtypes and devices, as its messages print them."""

from __future__ import annotations

# c10::ScalarType, in its order of declaration (torch/headeronly/core/ScalarType.h).
SCALAR_TYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
    "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16",
)  # fmt: skip
AT_NAMES = {
    "kByte": "uint8",
    "kChar": "int8",
    "kShort": "int16",
    "kInt": "int32",
    "kLong": "int64",
    "kHalf": "float16",
    "kFloat": "float32",
    "kDouble": "float64",
    "kComplexHalf": "complex32",
    "kComplexFloat": "complex64",
    "kComplexDouble": "complex128",
    "kBool": "bool",
    "kBFloat16": "bfloat16",
}
# c10::DeviceType.
DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 14: "meta"}
