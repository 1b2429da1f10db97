"""What a desk knows of a failure from before: how often it was seen, where last, and what solved it."""

from __future__ import annotations

from aotidoctor.model.record import record

CASES_SCHEMA = "aotidoctor.cases/1"


@record
class Note:
    """What somebody wrote about a case. ``at`` is RFC 3339 UTC; ``solved`` says that it is what solved it."""

    text: str
    at: str
    solved: bool = False


@record
class Sighting:
    """One time that a failure was diagnosed. ``host_class`` is the kind of machine, empty where nobody knows.

    ``key`` are 32 hex digits over what makes it this sighting: two stores that both have it have it once.
    ``status`` is ``confirmed`` or ``suspected``, empty without a cause.
    """

    key: str
    at: str
    command: str
    subject: str = ""
    package: str = ""
    sha256: str = ""
    host_class: str = ""
    status: str = ""
    tool: str = ""


@record
class CaseRecord:
    """All that is kept of one failure, by its exact signature. ``number`` is its place in one store only."""

    signature: str
    family: str = ""
    cause: str = "unknown"
    stage: str = ""
    title: str = ""
    looked_like: str = ""
    number: int = 0
    count: int = 0
    first_seen: str = ""
    last_seen: str = ""
    sightings: tuple[Sighting, ...] = ()
    notes: tuple[Note, ...] = ()


@record
class History:
    """What a store says of the failure in a report, before this one.

    ``of`` is ``exact`` for the same signature, ``family`` where only its family was seen. ``count`` times since
    ``since``, last at ``last`` (RFC 3339) on ``host_class`` (empty: not known). ``solved`` is the latest note that says
    what solved it; ``notes`` are all there are.
    """

    of: str
    count: int
    since: str
    last: str
    host_class: str = ""
    solved: Note | None = None
    notes: int = 0
    number: int = 0
