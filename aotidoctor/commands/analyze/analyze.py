"""Judge a bundle or a saved report again, without the package, by today's playbooks (``aotidoctor analyze``).

    file ─► read ─► rebuild the case ─► checks ─► saved findings of runs ─► logs ─► causes ─► changes

Nothing is executed or unpacked to disk; a file is read into memory within limits, and its claims are checked before
use. The contract is read anew from the wrapper, by today's reader.

AD-BUN-001 compares today's first cause with the first cause of the original report: a change is a warning, since newer
playbooks know more; no change is a note. Runs are not repeated, so a cause that rests on runs alone is as reliable as
they were. Checksums prove only that a file arrived as it was packed.
"""

from __future__ import annotations

import hashlib
import json
import stat
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.checks.registry import CHECKS
from aotidoctor.commands.analyze import saved_report
from aotidoctor.commands.analyze.saved_report import SavedCause
from aotidoctor.commands.bundle.bundle_members import (
    BUNDLE_SCHEMA,
    CASE_MEMBER,
    CASE_SCHEMA,
    GIVEN_LOGS,
    MANIFEST,
    REPORT_MEMBER,
    safe_name,
)
from aotidoctor.logs.diagnose_log import log_diagnoses
from aotidoctor.model import record_json
from aotidoctor.model.case import Case, Options, Tolerances
from aotidoctor.model.errors import CannotExamineError, InputsError
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, Severity, describe_failure
from aotidoctor.model.fleet import Samples
from aotidoctor.model.localization import Localization
from aotidoctor.model.record import JsonObject, JsonValue, as_object, objects, text_of
from aotidoctor.model.report import SCHEMA, Diagnosis, LogReading, Report
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.contract.sourceless_contract import resolve_leaves
from aotidoctor.readers.package.blob import Blob, opened_blob
from aotidoctor.readers.package.zip_archive import ZipEntry, duplicate_names, is_unsafe, read_entry, read_zip_directory
from aotidoctor.reports.json.json_report import saved_case
from aotidoctor.triage import treated_run
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.missing_file import examining_file
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, run_checks
from aotidoctor.triage.treated_run import TreatmentVerdicts
from aotidoctor.version import __version__

CHANGE_CODE = "AD-BUN-001"
FILE_CODE = "AD-BUN-002"


# The file: bounded, into memory.
LARGEST_MEMBER = 64 << 20
LARGEST_ALL = 256 << 20
_EXPECTED = f"expected a bundle of aotidoctor ({BUNDLE_SCHEMA}) or one of its JSON reports ({SCHEMA})"


@dataclass(slots=True, kw_only=True)
class SentFile:
    """A bundle or report. ``members`` have a correct checksum; ``problems`` say what was not used.

    ``manifest`` is empty for a bare report.
    """

    path: str
    report: JsonObject
    manifest: JsonObject = field(default_factory=dict)
    members: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def is_bundle(self) -> bool:
        """Whether it is a bundle, not a bare report."""
        return bool(self.manifest)

    def document(self, name: str) -> JsonObject | None:
        """A member as a JSON object; None if it is none."""
        data = self.members.get(name)
        found = None if data is None else _json(data)
        return found if isinstance(found, dict) else None


def read_sent_file(path: str) -> SentFile:
    """Read the file at ``path``.

    Raises:
        CannotExamineError: there is no such file, or it is neither a bundle nor a report.
    """
    with examining_file(path), opened_blob(path) as (blob, mode):
        if not stat.S_ISREG(mode):
            raise CannotExamineError(f"{path}: observed no file, {_EXPECTED}")
        directory = read_zip_directory(blob)
        if directory is not None:
            names = [entry.name for entry in directory.entries]
            if MANIFEST not in names:
                raise CannotExamineError(
                    f"{path}: observed an archive of {len(names)} members without {MANIFEST}, {_EXPECTED}"
                )
            doubled = duplicate_names(names)
            if doubled:
                raise CannotExamineError(
                    f"{path}: observed two members called {doubled[0][:80]!r}, expected one of each name"
                )
            entries = {entry.name: entry for entry in directory.entries}
            manifest = _json(read_entry(blob, entries[MANIFEST], LARGEST_MEMBER) or b"")
            if not isinstance(manifest, dict) or manifest.get("schema") != BUNDLE_SCHEMA:
                schema = manifest.get("schema") if isinstance(manifest, dict) else "no JSON"
                raise CannotExamineError(f"{path}: observed {str(schema)[:80]} in {MANIFEST}, expected {BUNDLE_SCHEMA}")
            sent = SentFile(path=path, report={}, manifest=manifest)
            if directory.problem is not None:
                sent.problems.append(directory.problem)
            _members(sent, blob, entries)
            if REPORT_MEMBER not in sent.members:
                raise CannotExamineError(
                    f"{path}: observed no {REPORT_MEMBER} that agrees with its checksum, expected one"
                )
            sent.report = _report(f"{path}/{REPORT_MEMBER}", _json(sent.members[REPORT_MEMBER]))
            return sent
        head = blob.read_at(0, 64).lstrip(b"\xef\xbb\xbf \t\r\n")
        if not head.startswith(b"{"):
            raise CannotExamineError(
                f"{path}: observed a file of {blob.size} bytes that is not an archive, {_EXPECTED}"
            )
        data = blob.read_all(LARGEST_MEMBER)
        if data is None:
            raise CannotExamineError(f"{path}: observed {blob.size} bytes, expected at most {LARGEST_MEMBER}")
        return SentFile(path=path, report=_report(path, _json(data)))


def _members(sent: SentFile, blob: Blob, entries: dict[str, ZipEntry]) -> None:
    """Read the members that the manifest lists, within the limits; name the others."""
    listed = {str(item.get("name")): item for item in objects(sent.manifest.get("members"))}
    sent.problems += [f"{name[:80]} is not in the manifest" for name in entries if name not in {*listed, MANIFEST}][:20]
    left = LARGEST_ALL
    # The members that a diagnosis needs come first, so that the limit does not exclude them.
    for name in sorted(listed, key=lambda one: (one not in (REPORT_MEMBER, CASE_MEMBER), one)):
        entry = entries.get(name)
        problem, data = _member(blob, entry, listed[name], min(left, LARGEST_MEMBER))
        if data is None:
            sent.problems.append(f"{name[:80]}: {problem}")
        else:
            left -= len(data)
            sent.members[name] = data


def _member(blob: Blob, entry: ZipEntry | None, line: JsonObject, limit: int) -> tuple[str, bytes | None]:
    if entry is None:
        return "listed but missing", None
    if is_unsafe(entry.name) or stat.S_ISLNK(entry.mode) or entry.mismatch:
        return "an unsafe name, a link, or headers that cannot be combined", None
    if entry.size > limit:
        return f"{entry.size} bytes, more than is read", None
    data = read_entry(blob, entry, limit)
    if data is None or len(data) != entry.size:
        return "it cannot be unpacked", None
    if hashlib.sha256(data).hexdigest() != line.get("sha256"):
        return "its checksum is not the one in the manifest", None
    return "", data


def _json(data: bytes) -> JsonValue:
    try:
        value: JsonValue = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def _report(path: str, document: JsonValue) -> JsonObject:
    if not isinstance(document, dict):
        raise CannotExamineError(f"{path}: observed no JSON object, {_EXPECTED}")
    if document.get("schema") != SCHEMA:
        raise CannotExamineError(f"{path}: observed the schema {str(document.get('schema'))[:80]!r}, {_EXPECTED}")
    return document


# The case, rebuilt from the file.
_ERROR_FIELDS = ("cause", "kind", "subject", "observed", "expected")


def rebuild_case(sent: SentFile) -> tuple[Case, bool]:
    """The case, and whether it is complete, so that the checks can run again."""
    document = sent.document(CASE_MEMBER)
    if document is None or document.get("schema") != CASE_SCHEMA:
        if sent.is_bundle:
            sent.problems.append(f"{CASE_MEMBER} is missing or not of the schema {CASE_SCHEMA}")
        return saved_case(sent.report), False
    try:
        case = record_json.from_json(Case, document.get("case"))
    except record_json.RecordError as error:
        sent.problems.append(f"{CASE_MEMBER}: {str(error)[:200]}")
        return saved_case(sent.report), False
    case = _with_sources(case, document, sent)
    if case.model is None or case.model.wrapper_cpp is None:
        return case, True
    try:
        found = read_contract(case.artifact, case.model)
        contract = found if found is None or case.inputs is None else resolve_leaves(found, case.inputs)
    except Exception:  # noqa: BLE001 - the guard around a reader of foreign text: the saved contract is there
        sent.problems.append(f"the contract could not be read again: {traceback.format_exc(limit=-1)[-200:]}")
        return case, True
    return (case if contract is None else replace(case, contract=contract)), True


def _with_sources(case: Case, document: JsonObject, sent: SentFile) -> Case:
    """Add the sources of the models, the chosen model, and the error that reading the inputs met."""
    sources = as_object(document.get("sources"))
    models = []
    for model in case.artifact.models:
        texts: dict[str, str] = {}
        for member, place in as_object(sources.get(model.name)).items():
            data = sent.members.get(safe_name(place)) if isinstance(place, str) else None
            if data is None:
                sent.problems.append(f"the source of {member[-80:]} is not there")
            else:
                texts[member] = data.decode("utf-8", "replace")
        wrapper = texts.pop(model.wrapper_member, None) if model.wrapper_member is not None else None
        models.append(replace(model, wrapper_cpp=wrapper, kernel_sources=texts))
    artifact = replace(case.artifact, models=tuple(models))
    name, saved = document.get("model"), document.get("inputs_error")
    error = None
    if isinstance(saved, dict):
        facts = {field_: str(saved.get(field_) or "") for field_ in _ERROR_FIELDS}
        error = InputsError(str(saved.get("message") or ""), **facts)
    chosen = artifact.model(name) if isinstance(name, str) else None
    return replace(case, artifact=artifact, model=chosen, inputs_error=error)


# Today's verdict against the saved one, as findings.
_CALM = ("same", "none")
_NO_CAUSE = "no cause, as in the original report"


def compare_verdicts(before: Sequence[SavedCause], now: Sequence[Diagnosis], *, tool: str, path: str) -> Evidence:
    """One finding: the same cause, another one, a new one, or none any more."""
    old, new = before[0].cause if before else None, now[0].cause if now else None
    if old == new:
        kind = "same" if new else "none"
        message = f"the cause is the same as in the original report: {new}" if new else _NO_CAUSE
    elif old is None:
        kind, message = "named-now", f"the original report named no cause; now it is {new}"
    elif new is None:
        kind = "not-named"
        message = f"the saved report named {old}; nothing that can be checked again confirms it"
    else:
        kind, message = "another", f"the original report named {old}; now it is {new}"
    playbook = f" (playbook {now[0].playbook})" if now else ""
    return Evidence(
        code=CHANGE_CODE,
        kind=kind,
        severity=Severity.INFO if kind in _CALM else Severity.WARN,
        subject=None,
        observed=f"{new or 'no cause'} by aotidoctor {__version__}{playbook}",
        expected=f"{old or 'no cause'}, as reported by aotidoctor {tool or 'of an unknown version'}",
        message=message,
        source=FileSource(file=path),
        facts={"before": old, "now": new, "tool": tool},
    )


def report_unused_parts(problems: Sequence[str], path: str) -> list[Evidence]:
    """One warning for each part of the file that was not used."""
    return [
        Evidence(
            code=FILE_CODE,
            kind="not-used",
            severity=Severity.WARN,
            subject=path,
            observed=problem,
            expected="an unchanged bundle",
            message=f"{path}: {problem}",
            source=FileSource(file=path),
        )
        for problem in problems[:50]
    ]


UNJUDGED = "it holds no run, so a crash, a hang or wrong numbers in one cannot be judged: `aotidoctor bundle --run`"
# The flow. Commands whose reports rest on the checks of a package; findings of the others are taken as they are.
_CHECKED = ("run", "check", "localize", "compare", "analyze")


def analyze(path: str, tolerances: Tolerances | None = None, *, argv: tuple[str, ...] = ()) -> Report:
    """Judge the bundle or report at ``path`` again; with ``tolerances`` its comparison alone, by those.

    Raises:
        CannotExamineError: it is neither.
    """
    invocation = Invocation("analyze", argv)
    sent = read_sent_file(path)
    if tolerances is not None and tolerances != Tolerances():
        options = Options(tolerances=tolerances)
        return saved_report.judge_saved_comparison(path, options, argv=argv, command="analyze", saved=sent.report)
    case, whole = rebuild_case(sent)
    session = Session(case=case, runner=None)
    # The checks, if the case is complete, and saved findings of everything that cannot run again.
    old = saved_report.read_findings(sent.report)
    repeated: set[str] = set()
    if whole and sent.report.get("command") in _CHECKED:
        run_checks(session)
        repeated = {check.code for check in CHECKS} - {item.code for item in session.not_checked}
        # A treatment may have shown that the package works in spite of a finding, which was demoted then.
        demoted = {(one.code, one.kind, one.subject): one for one in reversed(old) if one.facts.get("harmless") is True}
        session.findings = [
            replace(item, severity=known.severity, message=known.message, facts=known.facts)
            if (known := demoted.get((item.code, item.kind, item.subject))) is not None
            else item
            for item in session.findings
        ]
    session.add([item for item in old if item.code not in repeated])
    reading = read_logs(session, sent)
    before = saved_report.read_causes(sent.report)
    refuted = tuple(item.cause for item in before if item.status == "suspected" and item.confirmation)
    confirmed = {item.cause: item.confirmation for item in before if item.status == "confirmed"}
    found = name_causes(session, refuted=refuted)
    named = {item.cause for item in found}
    both = [*found, *(item for item in log_diagnoses(session.findings) if item.cause not in named)]
    ordered = sorted(both, key=lambda item: -item.severity.rank)
    diagnoses = treated_run.apply_verdicts(ordered, TreatmentVerdicts(confirmed=confirmed, refuted=refuted))
    version = str(as_object(sent.report.get("tool")).get("version") or "")
    change = compare_verdicts(before, diagnoses, tool=version, path=path)
    session.add([change, *report_unused_parts(sent.problems, path)])
    partial = any(sent.report.get(name) is True for name in ("interrupted", "out_of_time"))
    cannot = sent.report.get("cannot_examine")
    session.runs = saved_report.read_runs(sent.report)
    static = {check.code for check in CHECKS}
    findings = f"the findings of {len(session.runs)} saved runs are kept" if session.runs else UNJUDGED
    # Somebody packed it because of a failure, which may be one that only a run shows.
    unjudged = sent.is_bundle and not session.runs and not diagnoses
    is_unknown = not diagnoses and (partial or cannot or unjudged)
    reason = f"{change.message}; `analyze` does not execute anything: {findings}"
    session.not_checked.append(NotChecked(code="AD-RUN", name="runs", reason=reason))
    session.not_checked += [
        item for item in saved_report.read_not_checked(sent.report) if item.code not in static and item.code != "AD-RUN"
    ]
    report = finish(
        session,
        diagnoses,
        invocation,
        verdict="unknown" if is_unknown else None,
        cannot_examine=cannot if isinstance(cannot, str) and not diagnoses else None,
        localization=saved_report.well_formed(Localization, sent.report.get("localization")),
        log=reading or saved_report.well_formed(LogReading, sent.report.get("log")),
        extra={
            **({"unjudged": UNJUDGED} if unjudged else {}),
            "from": path,
            "made_by": version,
            "made_at": text_of(sent.report.get("started")) or "",
        },
    )
    return replace(report, samples=saved_report.well_formed(Samples, sent.report.get("samples")))


def read_logs(session: Session, sent: SentFile) -> LogReading | None:
    """Add the findings of the logs; return the reading of the first log."""
    first: LogReading | None = None
    for name in sorted(sent.members):
        if not name.startswith(GIVEN_LOGS):
            continue
        try:
            # Imported only where a log was sent.
            from aotidoctor.commands.classify import classify_text

            found, _, reading = classify_text(sent.members[name], name)
        except Exception:  # noqa: BLE001 - the guard: a log must not prevent the rest of the report
            session.not_checked.append(NotChecked(code="AD-LOG", name=name, reason=describe_failure(2)))
            continue
        session.add(found)
        first = first or reading
    return first
