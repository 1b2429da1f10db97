"""The words in which a rehearsal is told, and its JSON as values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotidoctor.model.evidence import FactValue
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.run import Exited, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.triton.rehearsal import Wire

# What a finding is about, for a headline; by its kind.
TITLES = {
    "swapped": "tensors are swapped in the server",
    "unseen": "names that refer to different tensors than they suggest",
    "merged": "responses contain rows of different requests",
    "retyped": "bytes of one type are read as a different type",
    "static-batch": "the batch that was compiled is not the one that is served",
    "sizes": "sizes that the code was not compiled for",
    "output-type": "an output of a different type from the config",
    "scalar": "an output that the server cannot send",
    "refused": "the server refuses requests like the sample",
    "fails": "every request like the sample fails",
    "crashes": "a request like the sample ends the server",
    "plain-fails": "the package also fails without a server",
}


def ending_words(outcome: Outcome) -> str:
    """How a child ended, in a few words."""
    if outcome.error is not None:
        lines = outcome.error.message.strip().splitlines()
        return f"{outcome.error.type}: {lines[0][:200] if lines else ''}"
    match outcome.ending:
        case Signalled(name=name):
            return f"{name} in {outcome.stage}"
        case TimedOut(limit=limit):
            return f"no end within {limit:g} s in {outcome.stage}"
        case OutOfMemory(reason=reason):
            return f"killed for memory ({reason})"
        case Exited(code=code):
            return f"exit status {code} in the middle of {outcome.stage}"
        case other:
            return other.reason


def crossing(wires: Iterable[Wire], verb: str) -> str:
    """Which names are not what is meant."""
    return ", ".join(f"{wire.name}, meant to be {meant_path(wire)}, {verb} {wire.row.path}" for wire in wires)


def meant_path(wire: Wire) -> str:
    """The user's path of what is meant."""
    return wire.meant.row.path if wire.meant.row is not None else "nothing known"


def rename(wire: Wire) -> str:
    """The name that is right for what is meant."""
    right = wire.meant.row
    return f'name: "{right.ordinal}" for {right.path}' if right is not None else f"{wire.name} elsewhere"


def difference(answer: JsonObject, wire: Wire) -> str:
    """What is wrong with an answer."""
    if answer.get("what") == "beyond":
        return f"{text(sizes(answer.get('shape')))} values that are not an output of the model"
    if answer.get("what") == "shape":
        shape, wanted = _pair(answer.get("shape"))
        return f"shape {shape} instead of {wanted}"
    if answer.get("what") == "dtype":
        return f"{wire.dtype} where the plain call returns a different type"
    far, numel = number(answer.get("far")), number(answer.get("numel"))
    largest = answer.get("max_abs_diff")
    off = largest if isinstance(largest, str) else f"{_float(largest):.3g}"
    other = answer.get("same_as")
    known = f": they are output {other} of the plain call" if isinstance(other, int) else ""
    return f"wrong numbers in {wire.name} ({far} of {numel}, off by up to {off}){known}"


def shown(answer: JsonObject) -> str:
    """The answer, for a table."""
    what = str(answer.get("what"))
    if what in ("values", "nan"):
        return f"{number(answer.get('far'))} of {number(answer.get('numel'))} values differ"
    if what == "shape":
        return f"shape {_pair(answer.get('shape'))[0]}"
    return f"{answer.get('dtype')} {text(sizes(answer.get('shape')))}" if "agrees" not in answer else what


def facts_of(answer: JsonObject) -> dict[str, FactValue]:
    """The answer as facts."""
    names = ("request", "what", "far", "numel", "max_abs_diff", "same_as", "foreign", "bytes")
    return {name: value for name in names if isinstance(value := answer.get(name), str | int | float)}


def _pair(value: JsonValue) -> tuple[str, str]:
    both = value if isinstance(value, list) else []
    return (text(sizes(both[0])), text(sizes(both[1]))) if len(both) == 2 else ("?", "?")


def text(sizes: Sequence[int]) -> str:
    """Sizes as a config writes them."""
    return "[ " + ", ".join(map(str, sizes)) + " ]" if sizes else "[ ]"


def sizes(value: JsonValue) -> tuple[int, ...]:
    """A list of sizes out of JSON."""
    return tuple(int(size) for size in value if isinstance(size, int)) if isinstance(value, list) else ()


def number(value: JsonValue) -> int:
    """A number out of JSON, 0 for anything else."""
    return int(value) if isinstance(value, int | float) else 0


def _float(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
