"""Report what a limit of time or memory left out.

Apart from all others because ``--help`` imports it.
"""

from __future__ import annotations

from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.evidence import NotChecked

LIMIT_CODE = "AD-LIMIT"


def limit_not_checked(name: str, reached: LimitReachedError) -> NotChecked:
    """``name`` was not finished. Raises ``reached`` again where nothing but the report may follow."""
    if reached.final:
        raise reached
    return NotChecked(code=LIMIT_CODE, name=name, reason=str(reached))
