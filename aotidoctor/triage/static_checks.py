"""Run every check in order under one guard.

A check that raises becomes ``NotChecked`` with its traceback, and the session goes on. Child runs are the part of
``aotidoctor.triage.run_probes``, which a command that executes nothing does not import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.evidence import Evidence, NotChecked, Severity, describe_failure, limit_not_checked
from aotidoctor.model.record import record
from aotidoctor.model.report import current_extensions
from aotidoctor.triage.state import Session

if TYPE_CHECKING:
    from aotidoctor.checks.check import Check
    from aotidoctor.model.case import Case
    from aotidoctor.model.report import Diagnosis

# Per check: no report is read further, and no treatment needs more.
MOST_FINDINGS = 300
# What a fault of an artifact of torch.compile looks like, by stage; the playbooks speak of packages.
_LOOKED_LIKE = {
    "artifact": "_pickle.UnpicklingError, an AssertionError without text, or a silent compile",
    "host": "Compile package was created with a different ... version, or GuardManager check failed",
    "inputs": "RuntimeError: GuardManager check failed, TypeError: missing a required argument, or wrong numbers",
}
_NO_PACKAGE = "the file is no AOTInductor package"


def run_checks(session: Session) -> None:
    """Run all static checks in order, except those whose needs failed.

    Findings of a check stand also where a part of the wrapper that it reads was not understood; that part is reported.
    """
    # Not at the top: importing them all is most of the start of `env` and `inspect`.
    from aotidoctor.checks.registry import CHECKS

    failed: set[str] = set()
    asked = _asked_checks(session.case)
    for check in (*CHECKS, *current_extensions().checks):
        if asked is not None and check.name not in asked:
            session.not_checked.append(replace(check.unchecked(_NO_PACKAGE), moot=True))
            continue
        blocked = next((name for name in check.needs if name in failed), None)
        if blocked is not None:
            failed.add(check.name)
            unchecked = check.unchecked(f"it depends on {blocked}, which failed")
            session.not_checked.append(replace(unchecked, moot=True))
            continue
        result = run_check(check, session)
        missed = check.overlooked(session.case)
        session.not_checked += [missed] if missed is not None else []
        if isinstance(result, NotChecked):
            session.not_checked.append(result)
            continue
        session.add(result)
        if any(item.severity is Severity.ERROR for item in result):
            failed.add(check.name)


def _asked_checks(case: Case) -> frozenset[str] | None:
    """Names of the checks that are about such a file; None for a package, which all are about."""
    from aotidoctor.checks.registry import FOLDER_CHECKS, PRECOMPILED_CHECKS, executorch_checks

    if case.artifact.kind is ArtifactKind.PACKAGE_FOLDER and case.model is None:
        return FOLDER_CHECKS
    if case.artifact.precompiled is not None:
        return PRECOMPILED_CHECKS
    if case.artifact.executorch is None:
        return None
    code = case.model is not None and bool(case.model.shared_objects)
    return executorch_checks(code=code, method=case.contract is not None and case.contract.args is not None)


def overlooked_by_checks(case: Case) -> list[NotChecked]:
    """Parts of the wrapper that checks read and that were not understood."""
    from aotidoctor.checks.registry import CHECKS

    return [missed for missed in (check.overlooked(case) for check in CHECKS) if missed is not None]


def run_check(check: Check, session: Session) -> Sequence[Evidence] | NotChecked:
    """Run one check; an exception becomes ``NotChecked``."""
    try:
        found = check.run(session.case)
        if isinstance(found, NotChecked) or len(found) <= MOST_FINDINGS:
            return found
        more = f"{len(found) - MOST_FINDINGS:,} more findings of this check: not listed beyond {MOST_FINDINGS}"
        session.not_checked.append(check.unchecked(more))
        return found[:MOST_FINDINGS]
    except LimitReachedError as reached:
        session.out_of_time = True
        return limit_not_checked(check.name, reached)
    except Exception:  # noqa: BLE001 - a broken check must not cost the rest of the report
        return check.unchecked(describe_failure())


def name_causes(session: Session, *, refuted: tuple[str, ...] = ()) -> tuple[Diagnosis, ...]:
    """Diagnose the findings; only the playbooks that mention their codes are read."""
    loud = {item.code for item in session.findings if item.severity is not Severity.INFO}
    if not loud:
        return ()
    from aotidoctor.diagnosis.playbooks import load_playbooks
    from aotidoctor.diagnosis.rank import diagnose

    found = diagnose(session.findings, load_playbooks(loud), refuted=refuted, case=session.case)
    if session.case.artifact.precompiled is None:
        return found
    return tuple(_of_precompiled(one, session.findings) for one in found)


def _of_precompiled(diagnosis: Diagnosis, findings: Sequence[Evidence]) -> Diagnosis:
    """The diagnosis in the words of its finding where that has some: the playbooks speak of packages."""
    lead = next((item for item in findings if item.id in diagnosis.evidence), None)
    title = (lead.message if lead is not None else "") or diagnosis.title.replace("the package", "the file")
    remedy, step = diagnosis.remedy, lead.facts.get("remedy") if lead is not None else None
    return replace(
        diagnosis,
        title=title,
        looked_like=_LOOKED_LIKE.get(diagnosis.stage, diagnosis.looked_like),
        remedy=replace(remedy, text=step, command="") if isinstance(step, str) and remedy is not None else remedy,
    )


# Checks of file and host, to see whether a package fits another host.
FIT_STAGES = ("artifact", "host")
# Data are beside a program, a model and a device are what a call asks for.
NOT_OF_A_HOST = frozenset({"executorch_data", "model_name", "device_index"})


@record
class CheckResult:
    """One check and its result. ``blocked`` is the failed check that it depends on, None where it ran."""

    check: Check
    found: tuple[Evidence, ...] | NotChecked
    blocked: str | None = None


def run_host_checks(case: Case) -> tuple[CheckResult, ...]:
    """Run every check of ``FIT_STAGES``, in order."""
    from aotidoctor.checks.registry import CHECKS

    session = Session(case=case, runner=None)
    failed: set[str] = set()
    answers = []
    asked = _asked_checks(replace(case, contract=None))
    for check in CHECKS:
        if check.stage not in FIT_STAGES if asked is None else check.name not in asked - NOT_OF_A_HOST:
            continue
        blocked = next((name for name in check.needs if name in failed), None)
        found = check.unchecked(f"{blocked} failed") if blocked else run_check(check, session)
        if blocked or (not isinstance(found, NotChecked) and any(item.severity is Severity.ERROR for item in found)):
            failed.add(check.name)
        result = found if isinstance(found, NotChecked) else tuple(found)
        answers.append(CheckResult(check=check, found=result, blocked=blocked))
    return tuple(answers)
