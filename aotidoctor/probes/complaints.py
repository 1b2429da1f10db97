"""The complaints of the package's own input checks in plain words: what was given, what was compiled, where.

They print dtypes and devices as numbers of c10 (``expected: 4(at::kLong), but got: 3``).
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.c10 import AT_NAMES, DEVICE_TYPES, SCALAR_TYPES
from aotidoctor.model.evidence import FactValue


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
