"""Bounds of a tensor that are its values: dropped where there are few, coarse where there are many."""

from __future__ import annotations

import math
from dataclasses import replace

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.inputs import TensorDesc, ValueStats

# Bounds of so few elements are the elements.
FEW = 64


def without_values(tensor: TensorDesc) -> TensorDesc:
    """``tensor`` without exact bounds. Those of integers stay where they are two of several: they decide diagnoses."""
    stats = tensor.stats
    if stats is None or (stats.low is None and stats.high is None):
        return tensor
    integer = tensor.dtype in ITEMSIZE and tensor.dtype.startswith(("int", "uint", "bool"))
    if integer and tensor.numel > 1:
        return tensor
    kept = _coarse(stats) if not integer and tensor.numel >= FEW else replace(stats, low=None, high=None)
    return tensor if kept == stats else replace(tensor, stats=kept)


def _coarse(stats: ValueStats) -> ValueStats:
    return replace(stats, low=_rounded(stats.low), high=_rounded(stats.high))


def _rounded(value: float | None) -> float | None:
    """To one digit."""
    if value is None or not value or not math.isfinite(value):
        return value
    return float(f"{value:.0e}")
