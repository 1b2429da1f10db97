"""Exported programs, each judged by every rule after it was rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.exported import Violation
from aotidoctor.model.record import record


@record
class JudgedProgram:
    """One program of an archive; ``problem`` says why it could not be rebuilt.

    ``verifier`` is what PyTorch's own says: ``passes``, ``refuses`` (then ``verifier_says`` is its sentence) or
    ``not-asked``. ``cut`` counts, by rule (``G01``), the violations that are too many to be listed; ``skipped`` says
    why a rule was not judged. ``unknown_inputs`` are arguments of ``--dynamic-shapes`` that the program does not have.
    """

    name: str = ""
    problem: str | None = None
    verifier: str = "not-asked"
    verifier_says: str | None = None
    records: tuple[Violation, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    unknown_inputs: tuple[str, ...] = ()


@record
class Verified:
    """The programs of an archive, in order."""

    programs: tuple[JudgedProgram, ...] = ()
