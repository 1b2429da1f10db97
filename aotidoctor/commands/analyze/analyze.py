"""The flow of ``analyze``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.checks import CHECKS
from aotidoctor.commands.analyze import saved
from aotidoctor.commands.analyze.changes import compared, unbelieved
from aotidoctor.commands.analyze.reading import Sent, read_sent
from aotidoctor.commands.analyze.rebuild import rebuild
from aotidoctor.commands.bundle import GIVEN_LOGS
from aotidoctor.logs.diagnose import log_diagnoses
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.fault import failure
from aotidoctor.model.json_types import as_object, text_of
from aotidoctor.model.log import LogReading
from aotidoctor.model.report import Report
from aotidoctor.triage import treat
from aotidoctor.triage.finish import Stopwatch, finish
from aotidoctor.triage.session import Session, name_causes, run_checks
from aotidoctor.triage.treat import Verdicts

# Reports that rest on the checks of a package; the findings of the others stand as they are.
_CHECKED = ("run", "check", "localize", "compare", "analyze")


def analyze(path: str, *, argv: tuple[str, ...] = ()) -> Report:
    """Judge the bundle or report at ``path`` again.

    Raises:
        CannotExamineError: it is neither.
    """
    watch = Stopwatch("analyze", argv)
    sent = read_sent(path)
    case, whole = rebuild(sent)
    session = Session(case=case, runner=None)
    _ask(session, sent, whole=whole)
    reading = read_logs(session, sent)
    before = saved.causes(sent.report)
    diagnoses = _causes(session, before)
    version = str(as_object(sent.report.get("tool")).get("version") or "")
    change = compared(before, diagnoses, tool=version, path=path)
    session.add([change, *unbelieved(sent.problems, path)])
    partial = any(sent.report.get(name) is True for name in ("interrupted", "out_of_time"))
    cannot = sent.report.get("cannot_examine")
    session.runs = saved.runs(sent.report)
    session.not_checked += _not_asked(sent, change.message, runs=len(session.runs))
    return finish(
        session,
        diagnoses,
        watch,
        verdict="unknown" if (partial or cannot) and not diagnoses else None,
        cannot_examine=cannot if isinstance(cannot, str) and not diagnoses else None,
        localization=saved.localization(sent.report),
        log=reading or saved.log(sent.report),
        extra={"from": path, "made_by": version, "made_at": text_of(sent.report.get("started")) or ""},
    )


def _ask(session: Session, sent: Sent, *, whole: bool) -> None:
    """The checks, where the case is there, and the saved findings of all that cannot be asked again."""
    old = saved.findings(sent.report)
    asked: set[str] = set()
    if whole and sent.report.get("command") in _CHECKED:
        run_checks(session)
        asked = {check.code for check in CHECKS} - {item.code for item in session.not_checked}
        session.findings = [_as_treated(item, old) for item in session.findings]
    session.add([item for item in old if item.code not in asked])


def _as_treated(item: Evidence, old: Sequence[Evidence]) -> Evidence:
    """With what a treatment showed of it: that the package works all the same."""
    for known in old:
        same = (known.code, known.kind, known.subject) == (item.code, item.kind, item.subject)
        if same and known.facts.get("harmless") is True:
            return replace(item, severity=known.severity, message=known.message, facts=known.facts)
    return item


def _causes(session: Session, before: Sequence[saved.SavedCause]) -> tuple[Diagnosis, ...]:
    """Today's causes, with what the treatments of then showed; those of logs after what package and runs say."""
    refuted = tuple(item.cause for item in before if item.is_refuted)
    confirmed = {item.cause: item.confirmation for item in before if item.is_confirmed}
    found = name_causes(session, refuted=refuted)
    named = {item.cause for item in found}
    both = [*found, *(item for item in log_diagnoses(session.findings) if item.cause not in named)]
    ordered = sorted(both, key=lambda item: -item.severity.rank)
    return treat.apply(ordered, Verdicts(confirmed=confirmed, refuted=refuted))


def _not_asked(sent: Sent, change: str, *, runs: int) -> list[NotChecked]:
    """What needs the package or its host: said once, and what was not checked there either."""
    static = {check.code for check in CHECKS}
    what = f"the findings of {runs} saved runs are kept" if runs else "none were saved"
    own = NotChecked(code="AD-RUN", name="runs", reason=f"{change}; `analyze` does not execute anything: {what}")
    old = [item for item in saved.not_checked(sent.report) if item.code not in static and item.code != "AD-RUN"]
    return [own, *old]


def read_logs(session: Session, sent: Sent) -> LogReading | None:
    """Add what the logs say to the findings; the reading of the first one."""
    first: LogReading | None = None
    for name in sorted(sent.members):
        if not name.startswith(GIVEN_LOGS):
            continue
        try:
            # Not needed, and not worth its import, where no log was sent.
            from aotidoctor.commands.classify import classify_text  # noqa: PLC0415

            found, _, reading = classify_text(sent.members[name], name)
        except Exception:  # noqa: BLE001 - the guard: a log must not cost the rest of the report
            session.not_checked.append(NotChecked(code="AD-LOG", name=name, reason=failure(2)))
            continue
        session.add(found)
        first = first or reading
    return first
