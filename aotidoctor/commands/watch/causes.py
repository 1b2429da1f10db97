"""One ranking out of three sources: what the output says, what the files say, what runs under other settings said.

1. A cause that is found by several sources is one cause, with all their evidence.
2. What a comparison found (the package's own input checks, inputs against the contract) explains what the output says
   of the same stage, where its playbook says so: the output then names the symptom, which is what it looked like.
3. What the output names happened; what only the files show may have nothing to do with it. So it comes after, unless
   it explains, by its playbook, what the output is not sure of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.diagnosis.playbooks import find_playbook
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence, Severity

# A comparison with what the program itself handed over, or the native stack of its death.
_OF_THIS_FAILURE = ("AD-IN-", "AD-RUN-")
_SURE = 0.8
_GROUPS = {"load": "@load", "host": "@load", "artifact": "@load", "run": "@run", "inputs": "@run", "output": "@output"}


def merged(
    found: Sequence[Diagnosis], said: Sequence[Diagnosis], findings: Sequence[Evidence]
) -> tuple[Diagnosis, ...]:
    """``found`` are causes from the files and from runs, ``said`` those that the output names; both ranked."""
    codes = {item.id: item.code for item in findings}
    left = _distinct(said)
    kept: list[Diagnosis] = []
    for cause in found:
        if cause.severity is not Severity.ERROR:
            continue
        dynamic = _is_of_this_failure(cause, codes)
        gone = [one for one in left if one.cause == cause.cause or _explains(cause, one, dynamic=dynamic)]
        left = [one for one in left if one not in gone]
        if dynamic or gone:
            seen = gone[0].looked_like if gone else cause.looked_like
            kept.append(replace(_joined(cause, gone), looked_like=seen))
    left = [_joined(one, [other for other in found if other.cause == one.cause]) for one in left]
    named = {one.cause for one in (*kept, *left)}
    others = [one for one in found if one.cause not in named]
    return tuple(replace(one, rank=rank) for rank, one in enumerate((*kept, *left, *others), start=1))


def _is_of_this_failure(diagnosis: Diagnosis, codes: dict[str, str]) -> bool:
    return any(codes.get(name, "").startswith(_OF_THIS_FAILURE) for name in diagnosis.evidence)


def _distinct(said: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Each cause once, though several streams, or runs, name it."""
    first: dict[str, Diagnosis] = {}
    for one in said:
        first[one.cause] = _joined(first[one.cause], [one]) if one.cause in first else one
    return list(first.values())


def _explains(cause: Diagnosis, symptom: Diagnosis, *, dynamic: bool) -> bool:
    """What the files alone show does not outweigh words that name another cause for sure."""
    playbook = find_playbook(cause.playbook)
    if playbook is None:
        return False
    by_group = dynamic or symptom.confidence < _SURE
    return symptom.cause in playbook.explains or (by_group and _GROUPS.get(symptom.stage, "") in playbook.explains)


def _joined(cause: Diagnosis, others: Sequence[Diagnosis]) -> Diagnosis:
    if not others:
        return cause
    evidence = tuple(dict.fromkeys(name for one in (cause, *others) for name in one.evidence))
    same = [one for one in others if one.cause == cause.cause]
    return replace(
        cause,
        evidence=evidence,
        subject=cause.subject or next((one.subject for one in same if one.subject), None),
        confidence=max(one.confidence for one in (cause, *same)),
    )
