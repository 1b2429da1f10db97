"""Which causes account for which others, so that an explanation beats its symptom.

A playbook may say in ``explains`` what follows from its cause:

- a cause: it is dropped when this one is there, whatever it rests on;
- a symptom (``index-out-of-bounds``), ending (``signalled``) or signal (``SIGILL``) of a run: accounted for;
- a group: ``@load`` (a run failed before the model was called), ``@run`` (it failed in the call or after) and
  ``@output`` (it returned, and something about the results was odd).

A cause that rests on nothing but run evidence which another, better grounded cause accounts for is a symptom of that
one, and is dropped; its evidence goes to the explanation. Only errors explain: a warning may be right and beside the
point.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.match import Match, is_run
from aotidoctor.model.evidence import Evidence, Severity

REFERENCE = "AD-RUN-011"
PLAIN_RUN, BACKTRACE = "AD-RUN-001", "AD-RUN-023"
GROUPS = ("@load", "@run", "@output")
_ENDINGS = {"crash": "signalled", "hang": "timed-out"}
_EARLY = ("start", "import", "setup", "inputs", "load", "after_load")


def is_failure(item: Evidence) -> bool:
    """True for a run that did not return, and for a reference that has no answer where the package gave one."""
    if item.severity is not Severity.ERROR:
        return False
    return item.code == PLAIN_RUN or (item.code == REFERENCE and item.kind == "raises")


def accounts_for(match: Match, item: Evidence) -> bool:
    """True when the cause of ``match`` would make a run show ``item``."""
    if not is_run(item):
        return False
    explains = match.playbook.explains
    shown = (_ending(item), item.facts.get("symptom"), item.facts.get("signal"), _group(item))
    return any(sign in explains for sign in shown)


def _ending(item: Evidence) -> str:
    """The stack of a failed run is a sign of that run's ending."""
    return _ENDINGS.get(item.kind, item.kind) if item.code == BACKTRACE else item.kind


def _group(item: Evidence) -> str:
    if item.code not in (PLAIN_RUN, BACKTRACE):
        return "@output"
    return "@load" if item.facts.get("stage") in _EARLY else "@run"


def explained_by(symptom: Match, cause: Match) -> bool:
    """True when ``cause`` leaves nothing of ``symptom`` unexplained."""
    if symptom is cause or cause.severity.rank < symptom.severity.rank:
        return False
    if symptom.playbook.cause in cause.playbook.explains:
        return True
    if not cause.grounded or not symptom.symptomatic:
        return False
    return all(accounts_for(cause, item) for item in symptom.loud())


def supporting(match: Match, dropped: Sequence[Match], findings: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence of ``match``, of the symptoms it explains, and the failed run it accounts for."""
    extra = [item for other in dropped for item in other.evidence if item.severity is not Severity.INFO]
    if match.severity is Severity.ERROR:
        extra += [item for item in findings if is_failure(item) and accounts_for(match, item)]
    kept = {id(item): item for item in (*match.evidence, *extra)}
    return tuple(kept.values())
