"""Read the parts of a saved report as records, and judge a saved comparison with other tolerances.

Malformed parts of the file are left out. Nothing is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.localize.comparison import FINE, judge_anew, saved_comparison
from aotidoctor.model.case import Options, Tolerances
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, Severity
from aotidoctor.model.fleet import SampleCluster, SampleRow, Samples
from aotidoctor.model.jobs import Job
from aotidoctor.model.localization import Localization
from aotidoctor.model.record import JsonObject, JsonValue, as_integer, as_list, objects, record, text_of
from aotidoctor.model.record_json import RecordError, T, from_json, read_fitting
from aotidoctor.model.report import Report, Status
from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Request, Signalled, TimedOut
from aotidoctor.probes.reference_findings import CODE, OUTPUT_KINDS, is_another_program, output_finding
from aotidoctor.reports.json.json_report import read_saved_report, saved_case
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.samples import CODE as SAMPLES_CODE
from aotidoctor.triage.samples import NAMED, samples_finding
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes

_MOST = 20_000


@record
class SavedCause:
    """A saved diagnosis with the result of its treatment. One that did not help leaves the cause suspected."""

    cause: str
    status: str
    confirmation: str


def read_causes(report: JsonObject) -> list[SavedCause]:
    """The diagnoses, best first."""
    return _records(SavedCause, report.get("diagnoses"), dict.fromkeys(("cause", "status", "confirmation"), ""))


def read_findings(report: JsonObject) -> list[Evidence]:
    """The findings, with their old ids."""
    texts = dict.fromkeys(("code", "kind", "observed", "expected"), "")
    return _records(Evidence, report.get("findings"), {**texts, "severity": Severity.INFO, "subject": None})


def read_not_checked(report: JsonObject) -> list[NotChecked]:
    """The checks that were not made, with the reasons."""
    return _records(NotChecked, report.get("not_checked"), dict.fromkeys(("code", "name", "reason"), ""))


def _records(kind: type[T], values: JsonValue, defaults: Mapping[str, object]) -> list[T]:
    return [read_fitting(kind, one, defaults) for one in objects(values)[:_MOST]]


def read_runs(report: JsonObject) -> list[Outcome]:
    """The child runs, with the fields that a report has."""
    return [_run(item) for item in objects(report.get("runs"))[:_MOST]]


def well_formed(kind: type[T], value: JsonValue) -> T | None:
    """A part of the report as a record; None if there is none, or it is malformed."""
    try:
        return None if value is None else from_json(kind, value)
    except RecordError:
        return None


def _run(item: JsonObject) -> Outcome:
    others = {
        "id": "",
        "stage": "",
        "request": read_fitting(Request, item, {"probe": "", "job": "run", "payload": Job()}),
        "ending": _ending(item),
        "result": {"outputs": [item.get("outputs") or []], "applied": as_list(item.get("applied"))},
        "forked": item.get("fresh_process") is False,
    }
    renamed = {"stages": item.get("stages_s"), "peak_rss": item.get("peak_rss_bytes")}
    return read_fitting(Outcome, {**item, **renamed}, others)


def _ending(item: JsonObject) -> Ending:
    why = text_of(item.get("ending_why")) or ""
    match item.get("ending"):
        case "signalled":
            return Signalled(signal=0, name=text_of(item.get("signal")) or "", core_dumped="core dumped" in why)
        case "timed-out":
            limit = why.removeprefix("limit ").removesuffix(" s")
            return TimedOut(limit=float(limit) if limit.replace(".", "", 1).isdecimal() else 0.0)
        case "out-of-memory":
            return OutOfMemory(reason=why)
        case "exited":
            code = as_integer(item.get("exit_code")) or 0
            return Exited(code=code if abs(code) < 1 << 64 else 0, done=not why)
    return NotStarted(reason=why or "unknown")


# `compare --from` and `analyze --rtol`: a saved comparison with other tolerances.


def judge_saved_comparison(
    path: str,
    options: Options,
    *,
    argv: tuple[str, ...] = (),
    command: str = "compare",
    saved: JsonObject | None = None,
) -> Report:
    """Build a report like that of ``compare`` from the one in ``path``, or from ``saved``, that of a bundle.

    Raises:
        CannotExamineError: there is no comparison to judge.
        UsageError: a tolerance names an output that does not exist.
    """
    invocation = Invocation(command, argv)
    document = read_saved_report(path) if saved is None else saved
    samples = well_formed(Samples, document.get("samples"))
    found = saved_comparison(document)
    known = found or next((row.comparison for row in samples.rows if row.comparison), ()) if samples else found
    if not known:
        raise CannotExamineError(f"{path} contains no comparison with a reference")
    unused = options.tolerances.missing_outputs([item.path for item in known])
    if unused:
        raise UsageError(f"there is no output {unused[0]!r}; available: {', '.join(item.path for item in known)}")
    outputs = judge_anew(found, options.tolerances)
    session = Session(case=replace(saved_case(document), options=options), runner=None)
    # The saved findings, except those about outputs, which are made anew unless other weights explain the difference.
    source = FileSource(file=path)
    old = [replace(item, source=source, id="") for item in read_findings(document)]
    wrong = any(item.verdict not in FINE for item in outputs)
    weights = False
    for item in old:
        if item.code == CODE and item.kind == "weights":
            weights = True
            session.add([replace(item, severity=Severity.ERROR if wrong else Severity.WARN)])
        elif item.code != SAMPLES_CODE and (item.code != CODE or item.kind not in OUTPUT_KINDS):
            session.add([item])
    if found and not (weights and wrong):
        session.add([output_finding(outputs, source, another=is_another_program(old))])
    diagnoses = name_causes(session)
    if samples is not None:
        samples = _judge_samples(samples, options.tolerances)
        session.add([samples_finding(samples, certain=bool(diagnoses), source=source)])
    place = Localization(comparison=outputs)
    report = finish(session, diagnoses, invocation, localization=place, extra={"from": path})
    return replace(report, samples=samples)


_BY_TOLERANCE = "numeric-difference"


def _judge_samples(found: Samples, tolerances: Tolerances) -> Samples:
    """The samples under other tolerances; one that fails in another way keeps its verdict."""
    rows = tuple(_judge_row(row, tolerances) for row in found.rows)
    wrong = [row for row in rows if row.cause == _BY_TOLERANCE]
    clusters = [one for one in found.clusters if one.cause != _BY_TOLERANCE]
    if wrong:
        alike = SampleCluster(
            verdict="problem",
            cause=_BY_TOLERANCE,
            subject=wrong[0].subject,
            observed=wrong[0].observed,
            status=Status.SUSPECTED.value,
            count=len(wrong),
            names=tuple(row.name for row in wrong[:NAMED]),
        )
        clusters.append(alike)
    bad = [row.name for row in rows if row.verdict != "healthy"]
    differing = Counter(item.path for row in rows for item in row.comparison if item.verdict not in FINE)
    outputs = tuple(replace(one, differing=differing[one.path]) for one in found.outputs)
    return replace(
        found, rows=rows, clusters=tuple(clusters), outputs=outputs, bad=len(bad), first_bad=bad[0] if bad else None
    )


def _judge_row(row: SampleRow, tolerances: Tolerances) -> SampleRow:
    outputs = judge_anew(row.comparison, tolerances)
    if not outputs or row.cause not in ("", _BY_TOLERANCE) or (row.verdict != "healthy" and not row.cause):
        return replace(row, comparison=outputs)
    wrong = next((item for item in outputs if item.verdict not in FINE), None)
    if wrong is None:
        return replace(row, comparison=outputs, verdict="healthy", cause="", subject=None, observed="")
    observed = f"{wrong.verdict}, max |difference| {wrong.max_abs}"
    return replace(
        row, comparison=outputs, verdict="problem", cause=_BY_TOLERANCE, subject=wrong.path, observed=observed
    )
