"""What a limit of time or memory left out, as a line of the report."""

from __future__ import annotations

from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.evidence import NotChecked

CODE = "AD-LIMIT"


def left_out(name: str, reached: LimitReachedError) -> NotChecked:
    """``name`` was not finished. Raises ``reached`` again where nothing but the report may follow."""
    if reached.final:
        raise reached
    return NotChecked(code=CODE, name=name, reason=str(reached))
