"""Findings in, ranked diagnoses out. Pure.

Rules, in this order:

1. A playbook makes a diagnosis when its conditions hold and the worst of its evidence is at least as severe as the
   playbook asks (``warn`` or ``error``). Notes never make one.
2. A warning becomes an error when a run failed in a way that its playbook explains: a batch beyond the compiled
   range is a remark until the run dies of it. Not so for inputs that the compiled code does not read.
3. Explanations beat symptoms (``explain``): a cause that another one accounts for is not listed, its evidence is.
4. What was refuted (the treatment did not help) explains nothing and comes last.
5. Errors come before warnings, and those that are errors by themselves before promoted ones; then by weight: artifact,
   host, load, inputs, run, output; then by confidence.
6. While the package leaves dtype, rank or a size of an input open, what such inputs lead to is no more than a guess.
   It is no cause at all where nothing but the outcome speaks for it: outputs that change from call to call without a
   random operator, an operator of PyTorch itself that refused its arguments. The cause is then unknown.

Confidence is a judgement on a fixed scale, not a frequency:

====  =======================================================================
0.99  confirmed: the failure went away with the treatment and came back without,
      or the file itself is the proof (it is not there, cut off, or of another kind)
0.95  the package itself contradicts what it was given, read without running;
      or confirmed as above in the emulation of a GPU, and not on hardware
0.85  the runtime named it in so many words, or two independent signs agree
0.70  inferred: one strong sign, other causes looked at and not found
0.50  by elimination
0.35  a guess worth one experiment
====  =======================================================================
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from aotidoctor.diagnosis.explain import accounts_for, explained_by, is_failure, supporting
from aotidoctor.diagnosis.looked_like import looked_like
from aotidoctor.diagnosis.match import Match, match
from aotidoctor.diagnosis.particulars import remedy_in
from aotidoctor.diagnosis.treat_values import suspects
from aotidoctor.diagnosis.wording import fill, informed, subject_of, title_of
from aotidoctor.model.case import Case
from aotidoctor.model.diagnosis import Diagnosis, Playbook, Remedy, Status
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.operators import foreign

CONFIRMED = 0.99
IN_EMULATION = 0.95
_PROOF = (Status.CONFIRMED, Status.EMULATED, Status.SUSPECTED)
PLAIN_PATH = re.compile(r"[\w./+-]+")
PROMOTED = 0.75
SEEN = "the file itself shows it"
REFUTED = 0.3
# What inputs of another dtype or shape lead to, and how sure it is while nothing tells which are right.
BY_INPUTS = (
    "index-out-of-range", "nondeterministic", "custom-op-exception", "operator-refused", "kernel-crash", "nan-produced",
    "uninitialized-read", "overflow", "threading", "integer-division", "custom-op-crash",
)  # fmt: skip
UNREAD = 0.35
# What shows in the outputs alone, or comes and goes with the layout of memory, and what in the code would be a reason.
_SHOWN_BY = (
    ("AD-RUN-002", "differs"),
    ("AD-RUN-006", "differs"),
    ("AD-RUN-006", "heals"),
    ("AD-RUN-009", "depends"),
)
_REASONS = ("random_ops", "uninitialized_ops")


def diagnose(
    findings: Sequence[Evidence],
    playbooks: Sequence[Playbook],
    *,
    refuted: Collection[str] = (),
    case: Case | None = None,
) -> tuple[Diagnosis, ...]:
    """Diagnoses, best first; empty when nothing explains what was found.

    ``refuted`` are causes whose treatment was tried and changed nothing. With ``case`` a cause that lies in the values
    of inputs names those inputs, and commands name the files in question.
    """
    matches = [_promote(found, findings) for p in playbooks if (found := match(p, findings)) is not None]
    strong = [found for found in matches if found.severity.rank >= max(found.playbook.severity.rank, 1)]
    kept, dropped = _without_symptoms(strong, refuted)
    kept.sort(key=lambda found: _order(found, refuted))
    made = tuple(
        _diagnosis(found, rank, supporting(found, dropped.get(id(found), ()), findings), findings, refuted)
        for rank, found in enumerate(kept, start=1)
    )
    if case is None:
        return made
    told = [(item, found) for item, found in zip(made, kept, strict=True) if not _is_symptom(item, found, case)]
    return tuple(
        replace(_in_case(item, found, case, findings), rank=rank) for rank, (item, found) in enumerate(told, start=1)
    )


def _in_case(diagnosis: Diagnosis, found: Match, case: Case, findings: Sequence[Evidence]) -> Diagnosis:
    lead = informed(found.lead, found.evidence)
    diagnosis = replace(diagnosis, remedy=remedy_in(diagnosis.cause, diagnosis.remedy, lead, case, findings))
    located = with_paths(_located(diagnosis, case, findings), case)
    doubtful = is_guess(diagnosis.cause, case) and not _accounted(found)
    return replace(located, confidence=min(located.confidence, UNREAD)) if doubtful else located


def is_guess(cause: str, case: Case) -> bool:
    """Whether inputs of which the package leaves open what they must be like may as well be the reason (rule 6)."""
    return cause in BY_INPUTS and case.inputs is not None and case.contract is not None and case.contract.leaves_open()


def _is_symptom(diagnosis: Diagnosis, found: Match, case: Case) -> bool:
    """Whether it is such a guess, and nothing but the outputs or an operator of PyTorch speaks for it (rule 6)."""
    if diagnosis.status is not Status.SUSPECTED or not is_guess(diagnosis.cause, case):
        return False
    if diagnosis.cause == "operator-refused":
        return True
    if diagnosis.cause == "custom-op-exception":
        return bool(diagnosis.subject) and not foreign([diagnosis.subject or ""])
    return all((item.code, item.kind) in _SHOWN_BY for item in found.loud()) and not _accounted(found)


def _accounted(found: Match) -> bool:
    """Whether the code itself holds a reason why its outputs change."""
    return any(item.facts.get(name) for item in found.loud() for name in _REASONS)


def _located(diagnosis: Diagnosis, case: Case, findings: Sequence[Evidence]) -> Diagnosis:
    paths = suspects(diagnosis.cause, case, findings)
    return replace(diagnosis, subject=", ".join(paths)) if paths else diagnosis


def with_paths(diagnosis: Diagnosis, case: Case) -> Diagnosis:
    """The remedy's command with the user's files for the ``model.pt2`` and ``sample.pt`` of the playbooks.

    A path that a shell or Python would not take as it stands is left out: the command then stays an example.
    """
    command = diagnosis.remedy.command
    reference = case.options.reference if case.reference is not None else None
    files = (("model.pt2", case.artifact.path), ("sample.pt", case.inputs_path), ("exported.pt2", reference))
    for stand_in, path in files:
        if path is not None and PLAIN_PATH.fullmatch(path):
            # Such a path holds nothing that a replacement text would interpret.
            command = re.sub(rf"(?<![\w./-]){re.escape(stand_in)}\b", path, command)
    return replace(diagnosis, remedy=replace(diagnosis.remedy, command=command))


def confirm(diagnosis: Diagnosis, how: str, *, remedied: bool = True, emulated: bool = False) -> Diagnosis:
    """The diagnosis as confirmed by treatment; ``how`` says what was run.

    ``remedied``: what was run is what a user would do, and not only a proof. ``emulated``: in emulation only.
    """
    confirmed = replace(diagnosis, confirmation=how, would_confirm="")
    if emulated:
        return replace(confirmed, status=Status.EMULATED, confidence=IN_EMULATION)
    remedy = replace(diagnosis.remedy, verified=remedied)
    return replace(confirmed, status=Status.CONFIRMED, confidence=CONFIRMED, remedy=remedy)


def rerank(diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Confirmed ones first, else in the order given, with ranks counted anew: proof beats every rule above."""
    ordered = sorted(diagnoses, key=lambda item: _PROOF.index(item.status))
    return tuple(replace(item, rank=rank) for rank, item in enumerate(ordered, start=1))


def _beside_the_point(item: Evidence) -> bool:
    """What the compiled code does not read, or what is known to change nothing, kills no run."""
    return item.facts.get("unused") is True or item.facts.get("harmless") is True


def _promote(found: Match, findings: Sequence[Evidence]) -> Match:
    """Rule 2: the failed run joins the evidence, and lifts its severity."""
    if found.severity is not Severity.WARN or all(_beside_the_point(item) for item in found.loud()):
        return found
    failures = tuple(item for item in findings if is_failure(item) and accounts_for(found, item))
    if not failures:
        return found
    share = round(found.confidence * PROMOTED, 2)
    return replace(found, evidence=found.evidence + failures, confidence=share, promoted=True)


def _without_symptoms(matches: Sequence[Match], refuted: Collection[str]) -> tuple[list[Match], dict[int, list[Match]]]:
    """Those that stay, and by the id of an explanation its symptoms, which do not."""
    gone: dict[int, Match] = {}
    causes = sorted(matches, key=lambda found: (not found.grounded, found.playbook.weight))
    for cause in causes:
        if id(cause) in gone or cause.playbook.cause in refuted or cause.promoted:
            continue
        for symptom in matches:
            if id(symptom) not in gone and explained_by(symptom, cause):
                gone[id(symptom)] = cause
    symptoms: dict[int, list[Match]] = {}
    for found in matches:
        if id(found) in gone:
            symptoms.setdefault(id(gone[id(found)]), []).append(found)
    return [found for found in matches if id(found) not in gone], symptoms


def _order(found: Match, refuted: Collection[str]) -> tuple[bool, int, bool, int, float]:
    return (
        found.playbook.cause in refuted,
        -found.severity.rank,
        found.promoted,
        found.playbook.weight,
        -found.confidence,
    )


def _diagnosis(
    found: Match,
    rank: int,
    evidence: Sequence[Evidence],
    findings: Sequence[Evidence],
    refuted: Collection[str],
) -> Diagnosis:
    playbook, lead = found.playbook, informed(found.lead, found.evidence)
    doubted = playbook.cause in refuted
    proven = found.certain and not doubted
    return Diagnosis(
        cause=playbook.cause,
        rank=rank,
        status=Status.CONFIRMED if proven else Status.SUSPECTED,
        confidence=CONFIRMED if proven else round(found.confidence * REFUTED, 2) if doubted else found.confidence,
        title=title_of(playbook.title, lead, found.evidence),
        looked_like=looked_like(playbook, lead, evidence, findings),
        subject=subject_of(lead),
        evidence=tuple(dict.fromkeys(item.id for item in evidence if item.id)),
        remedy=Remedy(text=fill(playbook.remedy, lead), command=fill(playbook.command, lead)),
        playbook=playbook.cause,
        severity=found.severity,
        confirmation="its treatment was tried and the failure remained" if doubted else SEEN if proven else "",
        would_confirm="" if doubted or proven else fill(playbook.would_confirm, lead),
        stage=playbook.stage,
    )
