"""What a repro starts from, and what became of it."""

from __future__ import annotations

from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.record import record


@record
class Repro:
    """``files`` are the names in the folder, the script first; empty where nothing was written.

    ``certified`` says what was seen, empty where it was not; ``problem`` says then why not. ``inputs``, ``weights`` and
    ``environment`` say in words what is in the folder of what the user gave; ``tried`` are the attempts, in order.
    """

    certified: str = ""
    problem: str = ""
    ending: str = ""
    inputs: str = ""
    weights: str = ""
    environment: str = ""
    files: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()


@record
class Known:
    """What is known of the failure: of a report just made, or of one that was read."""

    signature: str | None
    diagnoses: tuple[Diagnosis, ...]
    findings: tuple[Evidence, ...]

    @property
    def cause(self) -> str:
        """The first cause."""
        return self.diagnoses[0].cause if self.diagnoses else "unknown"
