"""What a log says: bytes in, events and the causes that they point at out. Pure; nothing is run or opened here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.logs.advice import next_steps
    from aotidoctor.logs.patterns import LEAST_CONFIDENCE, PatternError, load_patterns
    from aotidoctor.logs.read import read_log
    from aotidoctor.logs.versions import is_fixed

__all__ = ["LEAST_CONFIDENCE", "PatternError", "is_fixed", "load_patterns", "next_steps", "read_log"]

_PLACES = {
    "LEAST_CONFIDENCE": "patterns",
    "PatternError": "patterns",
    "is_fixed": "versions",
    "load_patterns": "patterns",
    "next_steps": "advice",
    "read_log": "read",
}
__getattr__ = names_of(__name__, _PLACES)
