"""A cause with its evidence, and what to do about it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.evidence import Severity
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record


class Status(enum.Enum):
    """``confirmed``: the failure went away with the treatment and came back without it; or the file itself proves it.

    ``confirmed-in-emulation``: the same, seen in the emulation of a GPU on the CPU and not on hardware. All else is
    ``suspected``.
    """

    CONFIRMED = "confirmed"
    EMULATED = "confirmed-in-emulation"
    SUSPECTED = "suspected"


@record
class Condition:
    """Matches evidence by code and kind (None: any kind), and by equal facts.

    A code or text fact that ends in ``*`` matches by prefix (``TRITON-*``); a fact of ``*`` alone matches any value
    that is there. ``confidence`` replaces that of the playbook when this condition is the best one that matched.
    ``certain``: an error that meets it is proof by itself, such as a file that is not there or is cut off.
    """

    code: str
    kind: str | None = None
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    confidence: float | None = None
    certain: bool = False


@record
class Playbook:
    """One file of ``playbooks/``: conditions and advice. ``looked_like`` and ``remedy`` may name facts in braces.

    ``severity`` is the least severity of evidence that makes a diagnosis. ``weight`` orders causes, lowest first.
    ``explains`` names causes, symptoms (``index-out-of-bounds``, ``signalled``) and the groups ``@load``, ``@run`` and
    ``@output`` that this cause accounts for. ``stage`` is the heading of the cause: ``artifact``, ``host``, ``load``,
    ``inputs``, ``run``, ``output``, ``compile`` or ``other``.
    """

    cause: str
    title: str
    any_of: tuple[Condition, ...]
    all_of: tuple[Condition, ...]
    none_of: tuple[Condition, ...]
    explains: tuple[str, ...]
    severity: Severity
    weight: int
    confidence: float
    looked_like: str
    remedy: str
    command: str
    treatment: str | None
    would_confirm: str
    versions: str
    path: str
    stage: str = ""


@record
class Treatment:
    """A change to the case that should make the failure go away.

    ``steps`` is what the worker applies in order, each ``{"op": ...}`` (see ``aotidoctor.worker.treatments.treat``).
    ``command`` is the same change as a line of Python for the user.
    """

    name: str
    cause: str
    text: str
    steps: tuple[JsonObject, ...]
    command: str = ""


@record
class Remedy:
    """What to do. ``verified`` is True only when a child run with it succeeded and one without it failed."""

    text: str
    command: str = ""
    verified: bool = False


@record
class Diagnosis:
    """A cause, ranked. ``confidence`` in 0..1; ``evidence`` are ids; ``confirmation`` says what was run for it.

    ``stage`` is that of the playbook: where the failure is.
    """

    cause: str
    rank: int
    status: Status
    confidence: float
    title: str
    looked_like: str
    subject: str | None
    evidence: tuple[str, ...]
    remedy: Remedy
    playbook: str
    severity: Severity = Severity.ERROR
    confirmation: str = ""
    would_confirm: str = ""
    stage: str = ""


def compile_again(program: str) -> str:
    """The command that compiles the exported program in the file ``program`` into another package."""
    return f"torch._inductor.aoti_compile_and_package(torch.export.load({program!r}), package_path='recompiled.pt2')"
