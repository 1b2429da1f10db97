"""Does a package fit a host? The checks of file and host, asked of that host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.checks import CHECKS
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.triage.session import Session, ask_check

if TYPE_CHECKING:
    from aotidoctor.checks import Check
    from aotidoctor.model.case import Case

STAGES = ("artifact", "host")


@record
class Asked:
    """One check and its answer. ``blocked`` is the check that failed before it, None where it was asked."""

    check: Check
    found: tuple[Evidence, ...] | NotChecked
    blocked: str | None = None


def ask_host(case: Case) -> tuple[Asked, ...]:
    """Every check of the stages that a host decides about, in order."""
    session = Session(case=case, runner=None)
    failed: set[str] = set()
    asked = []
    for check in (check for check in CHECKS if check.stage in STAGES):
        blocked = next((name for name in check.needs if name in failed), None)
        found = check.unchecked(f"{blocked} failed") if blocked else ask_check(check, session)
        if blocked or (not isinstance(found, NotChecked) and any(item.severity is Severity.ERROR for item in found)):
            failed.add(check.name)
        result = found if isinstance(found, NotChecked) else tuple(found)
        asked.append(Asked(check=check, found=result, blocked=blocked))
    return tuple(asked)
