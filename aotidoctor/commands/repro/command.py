"""What ``aotidoctor repro`` and ``--report repro:DIR`` do: a diagnosis, new or saved, and its script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.commands import diagnose
from aotidoctor.commands.repro.reproduce import check_folder, reproduce
from aotidoctor.commands.repro.result import Known, Repro
from aotidoctor.commands.repro.script import NAME
from aotidoctor.model.case import Options
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.event import OnEvent
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.json_types import objects
from aotidoctor.model.records import RecordError, from_json
from aotidoctor.model.report import Report
from aotidoctor.reports.saved import read_saved
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import Facts, Stopwatch, finish


def repro(
    path: str,
    inputs_path: str | None,
    options: Options,
    directory: Path,
    *,
    saved: str | None = None,
    keep_weights: bool = False,
    redact: bool = True,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
) -> Report:
    """The report of the case, with what became of its script in ``extra``.

    ``saved`` is a JSON report of the same case: then nothing is diagnosed first.

    Raises:
        CannotExamineError: ``saved`` is no report.
        UsageError: the folder holds something else.
    """
    # Before the seconds that a diagnosis takes.
    check_folder(directory)
    if saved is not None:
        report = _from_saved(saved, path, inputs_path, options, argv=argv, environ=environ)
    else:
        report = diagnose.diagnose(
            path, inputs_path, options, command="repro", argv=argv, environ=environ, on_event=on_event
        )
    made = of_report(report, directory, environ, keep_weights=keep_weights, redact=redact, on_event=on_event)
    return replace(report, extra={**report.extra, **said(made, directory)})


def of_report(
    report: Report,
    directory: Path,
    environ: Mapping[str, str],
    *,
    keep_weights: bool = False,
    redact: bool = True,
    on_event: OnEvent | None = None,
) -> Repro:
    """The script of a report that was just made."""
    known = Known(signature=report.signature, diagnoses=report.diagnoses, findings=report.findings)
    try:
        return reproduce(
            report.case, known, directory, environ, keep_weights=keep_weights, redact=redact, on_event=on_event
        )
    except OSError as error:
        return Repro(problem=f"{error.filename or directory}: {error.strerror or error}")


def said(made: Repro, directory: Path) -> dict[str, str]:
    """The outcome as texts by name, for a report."""
    if not made.certified:
        return {"repro": f"not certified, not written: {made.problem}", "repro_tried": "\n".join(made.tried)}
    return {
        "repro": f"{directory / NAME}, certified: {made.certified}",
        "repro_ends": made.ending,
        "repro_inputs": made.inputs,
        "repro_weights": made.weights,
        "repro_tried": "\n".join(made.tried),
    }


def line_of(made: Repro, directory: Path) -> str:
    """The outcome in one line."""
    if not made.certified:
        last = f" (last tried: {made.tried[-1]})" if made.tried else ""
        return f"warning: no repro at {directory}: not certified: {made.problem}{last}"
    return f"{directory / NAME}, certified: {made.certified}; inputs {made.inputs}; weights: {made.weights}"


def _from_saved(
    saved: str,
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
) -> Report:
    watch = Stopwatch("repro", argv)
    signature, diagnoses, findings = _read(saved)
    case, unread = open_case.open_case(path, inputs_path, options, environ)
    report = finish(
        Facts(case=case, findings=findings, not_checked=unread),
        diagnoses,
        watch,
        verdict="problem" if diagnoses else "unknown",
        extra={"from": saved},
    )
    # The parts are of the saved report's runs, which are not here; its signature is.
    return replace(report, signature=signature)


def _read(saved: str) -> tuple[str | None, tuple[Diagnosis, ...], tuple[Evidence, ...]]:
    document = read_saved(saved)
    try:
        findings = [from_json(Evidence, {**item, "source": None}) for item in objects(document.get("findings"))]
        diagnoses = [from_json(Diagnosis, item) for item in objects(document.get("diagnoses"))]
    except RecordError as error:
        raise CannotExamineError(f"{saved}: {error}") from error
    signature = document.get("signature")
    return signature if isinstance(signature, str) else None, tuple(diagnoses), tuple(findings)
