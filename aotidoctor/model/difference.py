"""What differs between two documents: reports, packages, hosts or bundles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.record import record

DIFFERENCE_SCHEMA = "aotidoctor.diff/1"
# From what alone makes a package fail to what no playbook speaks of. ``outcome`` is what came of it, not why.
LEVELS = ("decisive", "relevant", "outcome", "minor")


@record
class Side:
    """One of the two. ``kind`` is ``report``, ``bundle``, ``package`` or ``host``.

    ``parts`` are those that it tells of: ``host``, ``package``, ``inputs``, ``outcome``. ``verdict`` is None where
    nothing was examined for one; ``causes`` are the slugs of its diagnoses, best first.
    """

    label: str
    name: str
    kind: str
    parts: tuple[str, ...]
    verdict: str | None = None
    causes: tuple[str, ...] = ()
    version: str = ""
    made: str = ""


@record
class Difference:
    """One fact that is not the same.

    ``rank`` counts from 1, what matters most first. ``area`` is the part it belongs to, or ``fit`` for what a package
    needs against what a host has. ``playbook`` is the cause that speaks of such a difference, None where none does;
    ``codes`` are those of the evidence that it rests on. ``diagnosed`` is the label of the side in which that cause was
    diagnosed, empty where in none or in both; ``evidence`` are findings of that side.
    """

    area: str
    subject: str
    a: str
    b: str
    level: str
    why: str
    rank: int = 0
    playbook: str | None = None
    codes: tuple[str, ...] = ()
    diagnosed: str = ""
    evidence: tuple[str, ...] = ()


@record
class Comparison:
    """Both sides and what differs, ranked.

    ``equal`` counts per area the facts that are the same. ``left_out`` counts what was not compared because it differs
    from run to run and machine to machine without meaning. ``unknown`` are facts that only one side tells.
    """

    a: Side
    b: Side
    differences: tuple[Difference, ...]
    equal: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @property
    def matters(self) -> tuple[Difference, ...]:
        """The differences that are more than minor."""
        return tuple(item for item in self.differences if item.level != "minor")
