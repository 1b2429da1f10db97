"""From findings to a ranked cause: playbooks, matching, ranking, the signature. Treatments: ``treatments``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.diagnosis.head import PlaybookError
    from aotidoctor.diagnosis.playbooks import find_playbook, load_playbooks
    from aotidoctor.diagnosis.rank import confirm, diagnose, is_guess, rerank
    from aotidoctor.diagnosis.signature import fingerprint
    from aotidoctor.diagnosis.signing import signed

__all__ = [
    "PlaybookError",
    "confirm",
    "diagnose",
    "find_playbook",
    "fingerprint",
    "is_guess",
    "load_playbooks",
    "rerank",
    "signed",
]

_PLACES = {
    "PlaybookError": "head",
    "confirm": "rank",
    "diagnose": "rank",
    "find_playbook": "playbooks",
    "fingerprint": "signature",
    "is_guess": "rank",
    "load_playbooks": "playbooks",
    "rerank": "rank",
    "signed": "signing",
}
__getattr__ = names_of(__name__, _PLACES)
