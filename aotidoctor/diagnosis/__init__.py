"""From findings to a ranked, treatable cause: playbooks, matching, ranking, treatments and the signature."""

from __future__ import annotations

from aotidoctor.diagnosis.head import PlaybookError
from aotidoctor.diagnosis.playbooks import find_playbook, load_playbooks
from aotidoctor.diagnosis.rank import confirm, diagnose, rerank
from aotidoctor.diagnosis.signature import signature
from aotidoctor.diagnosis.treatments import combine, plan_treatment

__all__ = [
    "PlaybookError",
    "combine",
    "confirm",
    "diagnose",
    "find_playbook",
    "load_playbooks",
    "plan_treatment",
    "rerank",
    "signature",
]
