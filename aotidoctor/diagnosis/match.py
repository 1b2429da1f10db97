"""Does a playbook fit the evidence? The conditions of one playbook against all findings, nothing about rank.

A playbook fits when one of ``any_of`` is there (or ``any_of`` is empty), all of ``all_of`` are there and none of
``none_of`` is. The *lead* is the evidence that names the case in the title: the worst that meets the first condition
which more than a note meets, so playbooks list the condition with the best subject first.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.diagnosis import Condition, Playbook
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.record import record

# Probes that compare rather than try: input checks inside the package, the operator registry, operators called alone.
COMPARISONS = ("AD-RUN-003", "AD-RUN-010", "AD-RUN-015")


@record
class Match:
    """A playbook and the evidence it fits.

    ``confidence`` is that of the best condition of ``any_of`` that is met. ``certain``: an error meets one that is
    proof by itself. ``promoted``: warnings only, made an error by a failed run that they would explain.
    """

    playbook: Playbook
    lead: Evidence
    evidence: tuple[Evidence, ...]
    confidence: float
    certain: bool = False
    promoted: bool = False

    @property
    def severity(self) -> Severity:
        """The worst severity among the evidence."""
        return max((item.severity for item in self.evidence), key=lambda severity: severity.rank)

    @property
    def grounded(self) -> bool:
        """True when it rests on a comparison: of files, by the package's own checks, or of operators."""
        return any(not is_run(item) or item.code in COMPARISONS for item in self.loud())

    @property
    def symptomatic(self) -> bool:
        """True when it rests on nothing but what child runs did."""
        return all(is_run(item) for item in self.loud())

    def loud(self) -> tuple[Evidence, ...]:
        """The evidence without notes."""
        return tuple(item for item in self.evidence if item.severity is not Severity.INFO)


def is_run(item: Evidence) -> bool:
    """True for evidence that a child run gave."""
    return item.code.startswith("AD-RUN-")


def match(playbook: Playbook, findings: Sequence[Evidence]) -> Match | None:
    """The match, or None: also for a cause that only the lines of a log can tell."""
    if not playbook.any_of and not playbook.all_of:
        return None
    if any(holds(condition, item) for condition in playbook.none_of for item in findings):
        return None
    required = [_all(condition, findings) for condition in playbook.all_of]
    optional = [_all(condition, findings) for condition in playbook.any_of]
    if not all(required) or (playbook.any_of and not any(optional)):
        return None
    evidence = tuple({id(item): item for group in (*optional, *required) for item in group}.values())
    met = [c for c, group in zip(playbook.any_of, optional, strict=True) if group]
    shares = [playbook.confidence if c.confidence is None else c.confidence for c in met]
    return Match(
        playbook=playbook,
        lead=_lead((*optional, *required), evidence),
        evidence=evidence,
        confidence=max(shares, default=playbook.confidence),
        certain=any(c.certain and _proves(group) for c, group in zip(playbook.any_of, optional, strict=True)),
    )


def _proves(group: Sequence[Evidence]) -> bool:
    return any(item.severity is Severity.ERROR for item in group)


def _lead(groups: Sequence[Sequence[Evidence]], evidence: Sequence[Evidence]) -> Evidence:
    loud = (group for group in groups if any(item.severity is not Severity.INFO for item in group))
    return max(next(loud, evidence), key=lambda item: item.severity.rank)


def holds(condition: Condition, item: Evidence) -> bool:
    """True when ``item`` is what ``condition`` asks for."""
    if not _code_holds(condition.code, item.code) or condition.kind not in (None, item.kind):
        return False
    return all(_fact_holds(value, item.facts.get(key)) for key, value in condition.facts.items())


def _code_holds(wanted: str, code: str) -> bool:
    return code.startswith(wanted[:-1]) if wanted.endswith("*") else code == wanted


def _fact_holds(wanted: str | float | bool, observed: FactValue) -> bool:
    if not isinstance(wanted, str) or not wanted.endswith("*"):
        return observed == wanted
    if wanted == "*":
        return observed not in (None, "", (), False)
    return isinstance(observed, str) and observed.startswith(wanted[:-1])


def _all(condition: Condition, findings: Sequence[Evidence]) -> list[Evidence]:
    return [item for item in findings if holds(condition, item)]
