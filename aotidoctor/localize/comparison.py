"""The comparison with the reference, output by output: from a child run, or from a saved report, and judged anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.json_types import JsonObject, JsonValue, as_list, objects
from aotidoctor.model.localization import OutputComparison
from aotidoctor.model.records import RecordError, from_json
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
    odd = item.get("what") == "nan" or any(_pair(pair)[1] in ("inf", math.inf) for pair in as_list(item.get("needed")))
    sides = {"dtype": dtype, "shape": shape, "nan": nan, "inf": inf}
    return _saved(
        {
            **{name: value for name, value in item.items() if name not in sides},
            **{name: ours for name, (ours, _) in sides.items() if ours is not None},
            **{f"reference_{name}": theirs for name, (_, theirs) in sides.items() if theirs is not None},
            "verdict": item.get("verdict") or ("agrees" if item.get("agrees") is True else "unknown"),
            "max_abs": item.get("max_abs_diff"),
            "max_rel": item.get("max_rel_diff"),
            "nan_differs": odd,
        }
    )


def _saved(item: JsonObject) -> OutputComparison:
    """The record, as the JSON report spells it; what cannot be read of it has no verdict."""
    try:
        return from_json(OutputComparison, item)
    except RecordError as error:
        return OutputComparison(path=str(item.get("path") or ""), verdict="unknown", reason=str(error))


def _pair(value: JsonValue) -> tuple[JsonValue, JsonValue]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (None, None)


def _texts(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
