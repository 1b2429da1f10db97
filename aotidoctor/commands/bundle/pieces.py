"""What goes into a bundle, before and after redaction, and what does not."""

from __future__ import annotations

from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.report import Report


@record
class Piece:
    """One member to be. Exactly one of the last four is set.

    ``what`` says what it is. ``document`` is JSON: its texts are redacted one by one. ``printed`` is the output of a
    program. ``data`` is sent as it is: it cannot be redacted.
    """

    name: str
    what: str
    document: JsonObject | None = None
    text: str | None = None
    printed: str | None = None
    data: bytes | None = None


@record
class Absent:
    """Something that is not in the bundle, and why."""

    name: str
    reason: str


@record
class Sealed:
    """One finished member. ``redactions`` counts the placeholders in it; ``raw`` tells that it was not redacted."""

    name: str
    what: str
    data: bytes
    redactions: int = 0
    raw: bool = False


@record
class Wanted:
    """What the user asked for.

    ``include`` holds ``weights``, ``inputs`` and ``package``. ``words`` are private words; ``allowed`` are those (or
    their placeholders) that may stay in members which cannot be redacted. ``largest`` is the limit in bytes.
    """

    logs: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    redact: bool = True
    largest: int = 256 << 20


@record
class Material:
    """What there is to collect from.

    ``saved`` is a saved report that stands in for ``report``'s own findings, None where there is none. ``outputs`` maps
    ``R1.plain_run.stdout`` to what a child wrote; ``journal`` are lines about what aotidoctor did.
    """

    report: Report
    saved: JsonObject | None = None
    outputs: dict[str, str] | None = None
    journal: tuple[str, ...] = ()


@record
class Job:
    """What collectors look at."""

    material: Material
    wanted: Wanted
