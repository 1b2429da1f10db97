"""The comparison with the reference, output by output: from a child run, or from a saved report, and judged anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.json_types import JsonObject, JsonValue, objects
from aotidoctor.model.localization import OutputComparison
from aotidoctor.model.run import Outcome
from aotidoctor.model.tolerance import Tolerances, agrees_within

FINE = ("agrees", "both-within", "reference-imprecise")
STRUCTURAL = ("missing", "extra", "structure", "type", "shape")
# What a tolerance cannot change.
_FIXED = (*STRUCTURAL, "dtype")
_UNASKED = "it agreed, so no float64 run was made: run compare again for a verdict"


def read_comparison(outcome: Outcome) -> tuple[OutputComparison, ...]:
    """What the ``reference`` part of a run's result tells, in the reference's order; empty without one."""
    found = outcome.result.get("reference")
    if not isinstance(found, dict) or "outputs" not in found:
        return ()
    leaves = [_leaf(item) for item in objects(found.get("outputs"))]
    missing = [OutputComparison(path=path, verdict="missing") for path in _texts(found.get("missing"))]
    extra = [OutputComparison(path=path, verdict="extra") for path in _texts(found.get("extra"))]
    odd: list[OutputComparison] = []
    if found.get("same_structure") is False and not missing and not extra:
        ours, theirs = [*_texts(found.get("containers")), "", ""][:2]
        reason = f"{ours} for {theirs}" if ours and theirs else "another order"
        odd = [OutputComparison(path="result", verdict="structure", reason=reason)]
    return (*odd, *leaves, *missing, *extra)


def saved_comparison(document: JsonObject) -> tuple[OutputComparison, ...]:
    """The comparison that a JSON report holds; empty where it has none."""
    place = document.get("localization")
    held = place.get("comparison") if isinstance(place, dict) else None
    return tuple(_saved(item) for item in objects(held) if isinstance(item.get("path"), str))


def judge_anew(found: Sequence[OutputComparison], tolerances: Tolerances) -> tuple[OutputComparison, ...]:
    """With other tolerances. An output that none was given for keeps its verdict; see ``agrees_within``."""
    leaves = [item for item in found if item.verdict not in ("structure", "missing", "extra")]
    places = {item.path: index for index, item in enumerate(leaves)}
    return tuple(_anew(item, tolerances.of(item.path, places.get(item.path, -1))) for item in found)


def _anew(item: OutputComparison, asked: tuple[float, float] | None) -> OutputComparison:
    if asked is None or item.verdict in _FIXED or not item.needed:
        return item
    rtol, atol = asked
    beyond = item.far if (rtol, atol) == (item.rtol, item.atol) else 0
    if agrees_within(item.needed, rtol, atol):
        return replace(item, verdict="agrees", rtol=rtol, atol=atol, asked=True, far=0, reason=None)
    reason = item.reason if item.judged is not None or item.verdict != "agrees" else _UNASKED
    verdict = item.judged or "unknown"
    return replace(item, verdict=verdict, rtol=rtol, atol=atol, asked=True, far=beyond, reason=reason)


def _leaf(item: JsonObject) -> OutputComparison:
    dtype, shape, nan, inf = (_pair(item.get(name)) for name in ("dtype", "shape", "nan", "inf"))
    return _saved(
        {
            **item,
            "verdict": item.get("verdict") or ("agrees" if item.get("agrees") is True else "unknown"),
            "dtype": dtype[0],
            "reference_dtype": dtype[1],
            "shape": shape[0],
            "reference_shape": shape[1],
            "max_abs": item.get("max_abs_diff"),
            "max_rel": item.get("max_rel_diff"),
            "nan": nan[0],
            "reference_nan": nan[1],
            "inf": inf[0],
            "reference_inf": inf[1],
            "nan_differs": item.get("what") == "nan" or _needs_inf(item.get("needed")),
        }
    )


def _saved(item: JsonObject) -> OutputComparison:
    """The fields of the record, as the JSON report spells them."""
    return OutputComparison(
        path=str(item.get("path") or ""),
        verdict=str(item.get("verdict") or "unknown"),
        dtype=str(item.get("dtype") or ""),
        reference_dtype=str(item.get("reference_dtype") or ""),
        shape=_ints(item.get("shape")),
        reference_shape=_ints(item.get("reference_shape")),
        max_abs=number(item.get("max_abs")),
        max_rel=number(item.get("max_rel")),
        error=number(item.get("error")),
        reference_error=number(item.get("reference_error")),
        noise=number(item.get("noise")),
        allowed=number(item.get("allowed")),
        nan=_int(item.get("nan")),
        reference_nan=_int(item.get("reference_nan")),
        inf=_int(item.get("inf")),
        reference_inf=_int(item.get("reference_inf")),
        nan_differs=item.get("nan_differs") is True,
        judged=str(item["judged"]) if item.get("judged") else None,
        numel=_int(item.get("numel")),
        far=_int(item.get("far")),
        rtol=number(item.get("rtol")),
        atol=number(item.get("atol")),
        asked=item.get("asked") is True,
        needed=_needed(item.get("needed")),
        reason=str(item["reason"]) if item.get("reason") else None,
    )


def number(value: JsonValue) -> float | None:
    """A number, also one that JSON writes as text (``Infinity``, ``nan``); None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _needed(value: JsonValue) -> tuple[tuple[float, float], ...]:
    pairs = [_pair(item) for item in value] if isinstance(value, list) else []
    numbers = [(number(rtol), number(atol)) for rtol, atol in pairs]
    return tuple((rtol, atol) for rtol, atol in numbers if rtol is not None and atol is not None)


def _needs_inf(value: JsonValue) -> bool:
    return any(math.isinf(atol) for _, atol in _needed(value))


def _pair(value: JsonValue) -> tuple[JsonValue, JsonValue]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (None, None)


def _ints(value: JsonValue) -> tuple[int, ...]:
    return tuple(_int(item) for item in value) if isinstance(value, list) else ()


def _int(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def _texts(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
