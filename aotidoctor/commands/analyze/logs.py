"""The logs that were sent, classified by today's patterns."""

from __future__ import annotations

from aotidoctor.commands.analyze.reading import Sent
from aotidoctor.commands.bundle import GIVEN_LOGS
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.fault import failure
from aotidoctor.model.log import LogReading
from aotidoctor.triage.session import Session


def read_logs(session: Session, sent: Sent) -> LogReading | None:
    """Add what the logs say to the findings; the reading of the first one."""
    first: LogReading | None = None
    for name in sorted(sent.members):
        if not name.startswith(GIVEN_LOGS):
            continue
        try:
            # Not needed, and not worth its import, where no log was sent.
            from aotidoctor.commands.classify import classify_text  # noqa: PLC0415

            found, _, reading = classify_text(sent.members[name], name)
        except Exception:  # noqa: BLE001 - the guard: a log must not cost the rest of the report
            session.not_checked.append(NotChecked(code="AD-LOG", name=name, reason=failure(2)))
            continue
        session.add(found)
        first = first or reading
    return first
