"""Read the parts of a saved report as records, and judge a saved comparison with other tolerances.

Malformed parts of the file are left out. Nothing is run.
"""

from __future__ import annotations

from dataclasses import replace

from aotidoctor.localize.comparison import FINE, judge_anew, saved_comparison
from aotidoctor.model import record_json
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, RunSource, Severity, Source, read_fact
from aotidoctor.model.jobs import Job
from aotidoctor.model.localization import Localization
from aotidoctor.model.record import JsonObject, JsonValue, as_integer, as_list, as_object, objects, record, text_of
from aotidoctor.model.report import LogReading, Report
from aotidoctor.model.run import (
    ChildError,
    Ending,
    Exited,
    NotStarted,
    Outcome,
    OutOfMemory,
    Request,
    Signalled,
    TimedOut,
)
from aotidoctor.probes.reference_findings import CODE, OUTPUT_KINDS, is_another_program, output_finding
from aotidoctor.reports.json.json_report import read_saved_report, saved_case
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes

_MOST = 20_000


@record
class SavedCause:
    """A saved diagnosis with the result of its treatment."""

    cause: str
    status: str
    confirmation: str

    @property
    def is_confirmed(self) -> bool:
        """Whether its treatment made the failure go away."""
        return self.status == "confirmed"

    @property
    def is_refuted(self) -> bool:
        """Whether its treatment did not help."""
        return self.status == "suspected" and bool(self.confirmation)


def read_causes(report: JsonObject) -> list[SavedCause]:
    """The diagnoses, best first."""
    return [
        SavedCause(cause=_text(item, "cause"), status=_text(item, "status"), confirmation=_text(item, "confirmation"))
        for item in objects(report.get("diagnoses"))[:_MOST]
    ]


def read_findings(report: JsonObject) -> list[Evidence]:
    """The findings, with their old ids."""
    severities = {one.value: one for one in Severity}
    return [
        Evidence(
            code=_text(item, "code"),
            kind=_text(item, "kind"),
            severity=severities.get(_text(item, "severity"), Severity.INFO),
            subject=text_of(item.get("subject")),
            observed=_text(item, "observed"),
            expected=_text(item, "expected"),
            message=_text(item, "message"),
            source=_source(item.get("source")),
            facts={name: read_fact(value) for name, value in as_object(item.get("facts")).items()},
            id=_text(item, "id"),
        )
        for item in objects(report.get("findings"))[:_MOST]
    ]


def read_not_checked(report: JsonObject) -> list[NotChecked]:
    """The checks that were not made, with the reasons."""
    found = objects(report.get("not_checked"))[:_MOST]
    return [
        NotChecked(
            code=_text(one, "code"), name=_text(one, "name"), reason=_text(one, "reason"), moot=one.get("moot") is True
        )
        for one in found
    ]


def read_runs(report: JsonObject) -> list[Outcome]:
    """The child runs, with the fields that a report has."""
    return [_run(item) for item in objects(report.get("runs"))[:_MOST]]


def read_localization(report: JsonObject) -> Localization | None:
    """The place of the failure; None if there is none, or it is malformed."""
    return _record(Localization, report.get("localization"))


def read_saved_log(report: JsonObject) -> LogReading | None:
    """The reading of a log; None if there is none, or it is malformed."""
    return _record(LogReading, report.get("log"))


def _record(kind: type[record_json.T], value: JsonValue) -> record_json.T | None:
    try:
        return None if value is None else record_json.from_json(kind, value)
    except record_json.RecordError:
        return None


def _source(value: JsonValue) -> Source | None:
    match value:
        case {"file": str(file), "line": int() | None as line}:
            return FileSource(file=file, line=line)
        case {"run": str(run), "stream": str(stream), "line": int() | None as line}:
            return RunSource(run=run, stream=stream, line=line)
    return None


def _run(item: JsonObject) -> Outcome:
    error = item.get("error")
    took = item.get("took_effect")
    return Outcome(
        id=_text(item, "id"),
        request=Request(
            probe=_text(item, "probe"),
            job="run",
            payload=Job(),
            purpose=_text(item, "purpose"),
            env={name: text_of(one) for name, one in as_object(item.get("env")).items()},
        ),
        ending=_ending(item),
        stage=_text(item, "stage"),
        error=ChildError(**{name: str(error.get(name) or "") for name in ("type", "message", "traceback")})
        if isinstance(error, dict)
        else None,
        result={"outputs": [item.get("outputs") or []], "applied": as_list(item.get("applied"))},
        stages=_numbers(item.get("stages_s")),
        warnings=tuple(one for one in as_list(item.get("warnings")) if isinstance(one, str)),
        stdout_tail=_text(item, "stdout_tail"),
        stderr_tail=_text(item, "stderr_tail"),
        stdout_bytes=_integer(item, "stdout_bytes") or 0,
        stderr_bytes=_integer(item, "stderr_bytes") or 0,
        seconds=_numbers({"s": item.get("seconds")}).get("s", 0.0),
        argv=tuple(one for one in as_list(item.get("argv")) if isinstance(one, str)),
        forked=item.get("fresh_process") is False,
        took_effect=took if isinstance(took, bool) else None,
        took_effect_why=_text(item, "took_effect_why"),
        peak_rss=_integer(item, "peak_rss_bytes"),
    )


def _ending(item: JsonObject) -> Ending:
    why = _text(item, "ending_why")
    match item.get("ending"):
        case "signalled":
            return Signalled(signal=0, name=_text(item, "signal"), core_dumped="core dumped" in why)
        case "timed-out":
            limit = why.removeprefix("limit ").removesuffix(" s")
            return TimedOut(limit=float(limit) if limit.replace(".", "", 1).isdecimal() else 0.0)
        case "out-of-memory":
            return OutOfMemory(reason=why)
        case "exited":
            return Exited(code=_integer(item, "exit_code") or 0, done=not why)
    return NotStarted(reason=why or "unknown")


def _text(item: JsonObject, name: str) -> str:
    return text_of(item.get(name)) or ""


def _integer(item: JsonObject, name: str) -> int | None:
    value = as_integer(item.get(name))
    return value if value is not None and abs(value) < 1 << 64 else None


def _numbers(value: JsonValue) -> dict[str, float]:
    pairs = as_object(value).items()
    return {name: float(one) for name, one in pairs if isinstance(one, (int, float)) and abs(one) < 1e18}


# `compare --from`: a saved comparison with other tolerances.


def judge_saved_comparison(path: str, options: Options, *, argv: tuple[str, ...] = ()) -> Report:
    """Build a report like that of ``compare`` from the one in ``path``.

    Raises:
        CannotExamineError: there is no comparison to judge.
        UsageError: a tolerance names an output that does not exist.
    """
    invocation = Invocation("compare", argv)
    document = read_saved_report(path)
    saved = saved_comparison(document)
    if not saved:
        raise CannotExamineError(f"{path} contains no comparison with a reference")
    unused = options.tolerances.unused([item.path for item in saved])
    if unused:
        raise UsageError(f"there is no output {unused[0]!r}; available: {', '.join(item.path for item in saved)}")
    outputs = judge_anew(saved, options.tolerances)
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
        elif item.code != CODE or item.kind not in OUTPUT_KINDS:
            session.add([item])
    if not (weights and wrong):
        session.add([output_finding(outputs, source, another=is_another_program(old))])
    diagnoses = name_causes(session)
    return finish(session, diagnoses, invocation, localization=Localization(comparison=outputs), extra={"from": path})
