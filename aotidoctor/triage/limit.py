"""Report what a limit of time or memory left out.

A module of its own because ``--help`` imports it.
"""

from __future__ import annotations

from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.evidence import NotChecked

LIMIT_CODE = "AD-LIMIT"


def limit_not_checked(name: str, reached: LimitReachedError) -> NotChecked:
    """Note that ``name`` was not finished. Raises ``reached`` again where only the report may follow."""
    if reached.final:
        raise reached
    return NotChecked(code=LIMIT_CODE, name=name, reason=str(reached))
