"""Treatment of a custom operator: a stand-in that returns zeros of the form that its fake kernel promises.

It proves whose fault the failure is, and is no remedy.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.treat_plan import Plan, found
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence

ALONE = "AD-RUN-015"
_KINDS = ("signalled", "raised", "exited", "timed-out", "bad-return", "fake-kernel")


def stand_in(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Replace the one operator that fails when it is called alone."""
    names = list(dict.fromkeys(item.subject for item in found(findings, ALONE, *_KINDS)))
    if len(names) != 1 or names[0] is None:
        return None
    return Plan(
        text=f"put zeros of the promised form in place of what {names[0]} returns, to see the call return",
        steps=({"op": "stand_in_operator", "target": names[0]},),
    )
