"""The complaints of the package's own input checks in plain words: what was given, what was compiled, where.

They print dtypes and devices as numbers of c10 (``expected: 4(at::kLong), but got: 3``).
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.evidence import FactValue

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


def in_words(symptom: str, facts: Mapping[str, FactValue]) -> tuple[str, str, str] | None:
    """``(observed, expected, suffix of the subject)``; None for what is no complaint about an input."""
    got, wanted, dim = str(facts.get("got")), str(facts.get("wanted")), facts.get("dim")
    match symptom:
        case "check-dtype":
            return _dtype(got), AT_NAMES.get(wanted.removeprefix("at::"), wanted), ""
        case "check-low":
            return got, f"at least {wanted}", f".shape[{dim}]"
        case "check-high":
            return got, f"at most {wanted}", f".shape[{dim}]"
        case "check-dim":
            return got, wanted, f".shape[{dim}]"
        case "check-stride":
            return f"{got} at dim {dim}", wanted, ".stride"
        case "check-device":
            return DEVICE_TYPES.get(_number(got), f"device type {got}"), wanted or "cpu", ""
        case _:
            return None


def _dtype(code: str) -> str:
    number = _number(code)
    return SCALAR_TYPES[number] if 0 <= number < len(SCALAR_TYPES) else f"dtype {code}"


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1
