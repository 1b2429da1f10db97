"""What the ``run`` job saw of the tensors of its calls."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.answers import told
from aotidoctor.model.answers.called import Called, Tensor
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.run import Outcome


def outputs(outcome: Outcome, call: int) -> tuple[Tensor, ...]:
    """Outputs of call number ``call`` (from 0); empty when it was not made."""
    calls = told(Called, outcome.result).outputs
    return calls[call] if 0 <= call < len(calls) else ()


def calls_made(outcome: Outcome) -> int:
    """How many calls returned outputs."""
    return len(told(Called, outcome.result).outputs)


def inputs(outcome: Outcome) -> tuple[Tensor, ...]:
    """Input tensors as the child saw them; ``changed`` tells whether a call wrote to them."""
    return told(Called, outcome.result).inputs


def constants(outcome: Outcome) -> tuple[Tensor, ...]:
    """Constants of the package that the child could read."""
    return told(Called, outcome.result).constants


def resident_sizes(outcome: Outcome) -> tuple[int, ...]:
    """Resident set size in bytes after each call."""
    return told(Called, outcome.result).rss


def reference(outcome: Outcome) -> JsonObject:
    """The comparison with the reference; empty when there was none."""
    found = outcome.result.get("reference")
    return found if isinstance(found, dict) else {}


def same_outputs(a: Sequence[Tensor], b: Sequence[Tensor]) -> bool:
    """Bit for bit the same, in number, dtype, shape and bytes."""
    return [(v.dtype, v.shape, v.sha256) for v in a] == [(v.dtype, v.shape, v.sha256) for v in b]
