"""From findings to a ranked cause: playbooks, matching, ranking, the signature. Treatments: ``treatments``."""

from __future__ import annotations

from aotidoctor.diagnosis.head import PlaybookError
from aotidoctor.diagnosis.playbooks import find_playbook, load_playbooks
from aotidoctor.diagnosis.rank import confirm, diagnose, rerank
from aotidoctor.diagnosis.signature import fingerprint, signed

__all__ = [
    "PlaybookError",
    "confirm",
    "diagnose",
    "find_playbook",
    "fingerprint",
    "load_playbooks",
    "rerank",
    "signed",
]
