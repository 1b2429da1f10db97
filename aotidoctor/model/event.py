"""What a running diagnosis tells whoever watches it. Nothing in a report depends on events."""

from __future__ import annotations

import enum
from collections.abc import Callable

from aotidoctor.model.record import record


class EventKind(enum.Enum):
    """What happened.

    ``stage``: a stage of the pipeline begins. ``probe-start`` and ``probe-end``: one child run. ``treatment``: a
    treatment was tried (it has ended).
    """

    STAGE = "stage"
    PROBE_START = "probe-start"
    PROBE_END = "probe-end"
    TREATMENT = "treatment"


@record
class Event:
    """One step.

    ``name`` is the stage, probe or treatment. ``seconds`` is how long it took (0 at a start). ``verdict`` is a few
    words for a person (``SIGSEGV in run1``); ``ok`` is None where good and bad do not apply.
    """

    kind: EventKind
    name: str
    seconds: float = 0.0
    verdict: str = ""
    ok: bool | None = None


OnEvent = Callable[[Event], None]
