"""An operator that did not survive being called alone: how it ended, and what that says."""

from __future__ import annotations

import re
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.jobs import OneOperator
from aotidoctor.model.run import NotStarted, Outcome
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, succeeded

CALLS = ("run1", "again", "loop")
KILLS = ("SIGKILL", "SIGTERM", "SIGXCPU")
MEMORY = ("alloc-failed", "storage-overflow", "cuda-oom")
# What pybind says to a result of a Python kernel that is none.
NO_TENSOR = re.compile(r"Unable to cast .* to (?:Tensor|List\[Tensor\])", re.DOTALL)
ENDINGS = ("signalled", "raised", "exited", "timed-out", "out-of-memory", "flaky")
RUNS = ("AD-RUN-001", "AD-RUN-002", "AD-RUN-008", "AD-RUN-009")


def asked(outcome: Outcome) -> OneOperator:
    """What the run was asked."""
    payload = outcome.request.payload
    return payload if isinstance(payload, OneOperator) else OneOperator(target="")


def died(outcome: Outcome) -> bool:
    """Whether a call of the operator itself was the end, or the first look at what it returned."""
    if succeeded(outcome) or isinstance(outcome.ending, NotStarted):
        return False
    return outcome.stage in (*CALLS, "look")


def read(code: str, case: Case, history: History, outcome: Outcome) -> list[Evidence]:
    """One finding: the ending. It is the culprit's only where the package failed, too."""
    ending = read_ending(code, case, outcome)
    target = asked(outcome).target
    kind, observed = _kind(ending, outcome), ending.observed
    stage = {"again": "in the second call", "loop": "in a later call"}.get(outcome.stage, "")
    failed = _package_failed(history)
    return [
        replace(
            ending,
            kind=kind,
            severity=Severity.ERROR if failed else Severity.WARN,
            subject=target,
            observed=f"{observed} when called alone{stage and ', ' + stage}",
            expected="the operator to return",
            message=f"{target}, called alone: {observed}",
            facts={**ending.facts, "op": target, "stage": outcome.stage, "package_failed": failed},
        )
    ]


def _kind(ending: Evidence, outcome: Outcome) -> str:
    # A damaged heap may break while results are looked at; the results are not what is wrong then.
    damaged = ending.facts.get("symptom") == "heap-corruption"
    if (outcome.stage == "look" and not damaged) or (
        outcome.error is not None and NO_TENSOR.search(outcome.error.message)
    ):
        return "bad-return"
    if ending.facts.get("signal") in KILLS:
        return "killed"
    return "out-of-memory" if ending.facts.get("symptom") in MEMORY else ending.kind


def _package_failed(history: History) -> bool:
    return any(
        item.code in RUNS and item.severity is Severity.ERROR and item.kind in ENDINGS for item in history.findings
    )


def late_damage(history: History) -> bool:
    """Whether one call may be too few: memory grew, the heap was damaged, or it died only later or now and then."""
    return history.has("AD-RUN-008", "grows") or any(_is_late(item) for item in history.findings)


def doubtful(history: History) -> bool:
    """Whether calls alone that went well do not clear an operator: a damaged heap, or the package died inside one."""
    return history.has("AD-RUN-024", "custom") or any(_is_late(item) for item in history.findings)


def _is_late(item: Evidence) -> bool:
    if item.code not in RUNS or item.severity is not Severity.ERROR:
        return False
    if item.kind == "flaky" or item.facts.get("symptom") == "heap-corruption":
        return True
    return item.kind == "signalled" and (item.code != "AD-RUN-001" or item.facts.get("stage") != "run1")


def contract_in_doubt(history: History) -> bool:
    """Whether what is wrong may come of an operator that breaks its schema: then PyTorch's own check is worth its time.

    It takes longer than all other steps together.
    """
    silent = history.has("AD-RUN-004", "input-changed", "output-alias") or history.has("AD-RUN-011", "differs")
    return silent or history.has("AD-RUN-001", "signalled") or history.has("AD-RUN-002", "flaky")
