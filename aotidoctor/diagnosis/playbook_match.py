"""Match playbooks with the evidence, find causes that explain others, and describe how the failure looked.

A playbook fits when one of ``any_of`` is there (or ``any_of`` is empty), all of ``all_of`` are there and none of
``none_of`` is. The *lead* is the evidence that names the case in the title: the worst that meets the first condition
which more than a note meets, so playbooks list the condition with the best subject first.

A playbook may list in ``explains`` what follows from its cause:

- a cause: it is dropped when this one is there, whatever it rests on;
- a symptom (``index-out-of-bounds``), ending (``signalled``) or signal (``SIGILL``) of a run: accounted for;
- a group: ``@load`` (a run failed before the model was called), ``@run`` (it failed in the call or after) and
  ``@output`` (it returned, and something about the results was odd).

A cause that rests on nothing but run evidence which another, better grounded cause accounts for is a symptom of that
one, and is dropped; its evidence goes to the explanation. Only errors explain: a warning may be right and beside the
point. How the failure looked comes from the plain run; without one, from the playbook, as PyTorch would report it.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.playbooks import fill_text
from aotidoctor.model.evidence import Evidence, FactValue, Severity, shorten
from aotidoctor.model.record import record
from aotidoctor.model.report import Condition, Playbook

# Conditions of one playbook.
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
        """True when it rests on evidence of child runs alone."""
        return all(is_run(item) for item in self.loud())

    def loud(self) -> tuple[Evidence, ...]:
        """The evidence without notes."""
        return tuple(item for item in self.evidence if item.severity is not Severity.INFO)


def is_run(item: Evidence) -> bool:
    """True for evidence from a child run."""
    return item.code.startswith("AD-RUN-")


def match(playbook: Playbook, findings: Sequence[Evidence]) -> Match | None:
    """Match a playbook; None where it does not fit, or where only the lines of a log can show its cause."""
    if not playbook.any_of and not playbook.all_of:
        return None
    if any(holds(condition, item) for condition in playbook.none_of for item in findings):
        return None
    required = [_all(condition, findings) for condition in playbook.all_of]
    optional = [_all(condition, findings) for condition in playbook.any_of]
    if not all(required) or (playbook.any_of and not any(optional)):
        return None
    evidence = tuple({id(item): item for group in (*optional, *required) for item in group}.values())
    loud = (group for group in (*optional, *required) if any(item.severity is not Severity.INFO for item in group))
    met = [c for c, group in zip(playbook.any_of, optional, strict=True) if group]
    shares = [playbook.confidence if c.confidence is None else c.confidence for c in met]
    return Match(
        playbook=playbook,
        lead=max(next(loud, evidence), key=lambda item: item.severity.rank),
        evidence=evidence,
        confidence=max(shares, default=playbook.confidence),
        certain=any(
            c.certain and any(item.severity is Severity.ERROR for item in group)
            for c, group in zip(playbook.any_of, optional, strict=True)
        ),
    )


def holds(condition: Condition, item: Evidence) -> bool:
    """True when ``item`` meets ``condition``."""
    if not (
        item.code.startswith(condition.code[:-1]) if condition.code.endswith("*") else item.code == condition.code
    ) or condition.kind not in (None, item.kind):
        return False
    return all(_fact_holds(value, item.facts.get(key)) for key, value in condition.facts.items())


def _fact_holds(wanted: str | float | bool, observed: FactValue) -> bool:
    if not isinstance(wanted, str) or not wanted.endswith("*"):
        return observed == wanted
    if wanted == "*":
        return observed not in (None, "", (), False)
    return isinstance(observed, str) and observed.startswith(wanted[:-1])


def _all(condition: Condition, findings: Sequence[Evidence]) -> list[Evidence]:
    return [item for item in findings if holds(condition, item)]


# Causes that account for others.
REFERENCE = "AD-RUN-011"
PLAIN_RUN, BACKTRACE = "AD-RUN-001", "AD-RUN-023"
GROUPS = ("@load", "@run", "@output")
_ENDINGS = {"crash": "signalled", "hang": "timed-out"}
_EARLY = ("start", "import", "setup", "inputs", "load", "after_load")


def is_failure(item: Evidence) -> bool:
    """True for a run that did not return, and for a reference that raised where the package returned."""
    if item.severity is not Severity.ERROR:
        return False
    return item.code == PLAIN_RUN or (item.code == REFERENCE and item.kind == "raises")


def accounts_for(match: Match, item: Evidence) -> bool:
    """True when the cause of ``match`` would produce ``item`` in a run."""
    if not is_run(item):
        return False
    explains = match.playbook.explains
    group = "@load" if item.facts.get("stage") in _EARLY else "@run"
    # The stack of a failed run is a sign of that run's ending.
    signs = (
        (_ENDINGS.get(item.kind, item.kind) if item.code == BACKTRACE else item.kind),
        item.facts.get("symptom"),
        item.facts.get("signal"),
        group if item.code in (PLAIN_RUN, BACKTRACE) else "@output",
    )
    return any(sign in explains for sign in signs)


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
    """Evidence of ``match``, of the symptoms that it explains, and the failed run that it accounts for."""
    extra = [item for other in dropped for item in other.evidence if item.severity is not Severity.INFO]
    if match.severity is Severity.ERROR:
        extra += [item for item in findings if is_failure(item) and accounts_for(match, item)]
    return tuple({id(item): item for item in (*match.evidence, *extra)}.values())


# How the failure looked.
RETURNED = "returned without an error"
LIMIT = 200
INPUTS_FILE = "AD-IN-001"
_STAGES = {
    "start": "before anything ran",
    "import": "while importing torch",
    "setup": "in the setup file",
    "inputs": "while reading the inputs",
    "load": "at load",
    "after_load": "after the load",
    "scan": "after the call",
}


def looked_like(playbook: Playbook, lead: Evidence, evidence: Sequence[Evidence], findings: Sequence[Evidence]) -> str:
    """One line: the failure that the evidence accounts for, else the silent return, else the playbook's text."""
    failed = next((item for item in evidence if item.code == PLAIN_RUN and item.severity is Severity.ERROR), None)
    if failed is not None:
        return symptom_text(failed)
    returned = any(item.code == PLAIN_RUN and item.kind == "ok" for item in findings)
    # Inputs that cannot be read were not given to the call that returned.
    if returned and playbook.stage != "output" and lead.code != INPUTS_FILE:
        return RETURNED
    return fill_text(playbook.looked_like, lead)


def symptom_text(item: Evidence) -> str:
    """Describe a failed plain run in one line."""
    match item.kind:
        case "signalled":
            showed = f"killed by {item.facts.get('signal') or 'a signal'}"
        case "timed-out":
            showed = "no return"
        case "exited":
            showed = "the process ended without an error"
        case "out-of-memory":
            showed = "killed for memory"
        case "raised":
            kind, message = item.facts.get("type"), item.facts.get("line")
            line = _first_line(message if isinstance(message, str) and message else item.observed)
            showed = line if not isinstance(kind, str) or line.startswith(kind) else f"{kind}: {line}"
        case _:
            return _first_line(item.observed)
    return f"{showed} {stage_text(item.facts.get('stage'))}".strip()


def stage_text(stage: object) -> str:
    """Describe a stage: ``in the first call`` for ``run1``; empty for an unknown one."""
    if not isinstance(stage, str):
        return ""
    if stage.startswith("run"):
        return "in the first call" if stage in ("run", "run1") else f"in call {stage[3:]}"
    return _STAGES.get(stage, "")


def _first_line(text: str) -> str:
    return shorten(text.strip().partition("\n")[0], LIMIT)
