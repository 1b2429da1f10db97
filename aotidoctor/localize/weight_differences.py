"""Weights of the package against the reference's: which differ, and what that looks like.

``kind`` of the whole: ``flipped-bit`` (every weight that differs does so in single bits), ``cast``, ``transposed``,
``reshaped`` (all of them), ``stale-one`` (one of several differs in most elements), ``other-checkpoint`` (most weights
differ in most elements), ``other-model`` (another shape or dtype), ``other-values`` (anything else).
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.phrases import listed
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome

# More than this part of a weight's elements differs: it is another weight, not a damaged one.
_MOST = 0.5
_ALIKE = ("flipped-bit", "cast", "transposed", "reshaped")


@record
class WeightsCompared:
    """``names`` of the weights that differ, ``kind`` and a ``sentence`` about them (both empty where none does).

    ``equal`` counts the others that were compared. ``alone`` are names that only one side has: constants that were
    folded or written into the code at compile time, and what the model does not use. ``unread`` says why nothing was
    compared.
    """

    names: tuple[str, ...] = ()
    kind: str = ""
    sentence: str = ""
    equal: int = 0
    alone: tuple[str, ...] = ()
    unread: str = ""


def read_weights(outcome: Outcome) -> WeightsCompared:
    """What the ``weights`` part of a run's result tells."""
    found = outcome.result.get("weights")
    items = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    return judge_weights(items, unread=str(outcome.result.get("weights_unread") or "")[:300])


def judge_weights(items: Sequence[JsonObject], *, unread: str = "") -> WeightsCompared:
    """What the pairs of weights tell, each as ``worker.weight_differences`` describes it."""
    differing = [item for item in items if item.get("equal") is False]
    equal = sum(item.get("equal") is True for item in items)
    kind = _kind(differing, equal) if differing else ""
    return WeightsCompared(
        names=tuple(str(item.get("name")) for item in differing),
        kind=kind,
        sentence=_sentence(kind, differing, equal) if differing else "",
        equal=equal,
        alone=tuple(str(item.get("name")) for item in items if item.get("equal") is None),
        unread=unread,
    )


def _kind(differing: list[JsonObject], equal: int) -> str:
    kinds = {str(item.get("what")) for item in differing}
    if len(kinds) == 1 and (only := kinds.pop()) in _ALIKE:
        return only
    if any(item.get("what") in ("shape", "dtype") for item in differing):
        return "other-model"
    broad = [item for item in differing if item.get("what") == "values" and _share(item) > _MOST]
    if len(differing) == 1 and broad and equal:
        return "stale-one"
    return "other-checkpoint" if broad and len(broad) * 2 >= len(differing) + equal else "other-values"


def _sentence(kind: str, differing: list[JsonObject], equal: int) -> str:
    first, count, total = differing[0], len(differing), len(differing) + equal
    name = str(first.get("name"))
    names = listed([str(item.get("name")) for item in differing], 3)
    match kind:
        case "flipped-bit":
            more = sum(_int(item.get("differing")) for item in differing) - 1
            return f"{_element(first)}{f', and {more} more such' if more > 0 else ''}"
        case "cast":
            return f"{names}: the reference's values cast from {first.get('expected')} to {first.get('observed')}"
        case "transposed" | "reshaped":
            return f"{names}: the reference's values, {kind}"
        case "stale-one":
            part = f"{_int(first.get('differing'))} of {_int(first.get('numel'))} elements"
            return f"only {name} differs ({part}), {equal} others are equal: it was changed later in one of the two"
        case "other-checkpoint":
            return f"{count} of {total} weights differ, most of their elements: a different checkpoint ({names})"
        case "other-model":
            odd = next(item for item in differing if item.get("what") in ("shape", "dtype"))
            return (
                f"{odd.get('name')} has {odd.get('what')} {odd.get('observed')}, the reference's {odd.get('expected')}"
            )
        case _:
            part = f"{_int(first.get('differing'))} of {_int(first.get('numel'))} elements"
            return f"{count} of {total} weights differ ({names}); {name} in {part}, {_element(first)}"


def _element(item: JsonObject) -> str:
    """``l.weight[0, 3]: bit 30 is flipped: 4.3e+37 in the package, 0.126 in the reference``."""
    elements = item.get("elements")
    first = elements[0] if isinstance(elements, list) and elements and isinstance(elements[0], dict) else {}
    index, bits = first.get("index"), first.get("bits")
    place = ", ".join(map(str, index)) if isinstance(index, list) else ""
    which = f"bit {bits[0]} is flipped: " if isinstance(bits, list) and len(bits) == 1 else ""
    values = f"{_value(first.get('observed'))} in the package, {_value(first.get('expected'))} in the reference"
    return f"{item.get('name')}{f'[{place}]' if place else ''}: {which}{values}"


def _value(value: JsonValue) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _share(item: JsonObject) -> float:
    share = item.get("share")
    return float(share) if isinstance(share, int | float) else 0.0


def _int(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) else 0
