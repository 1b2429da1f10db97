"""What every format for people says, as values: the words are here, the layout is in the formats."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.diagnosis import Diagnosis, Status
from aotidoctor.model.evidence import Evidence, FileSource, RunSource, Severity, Source
from aotidoctor.model.phrases import listed
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports import history_view, log_view
from aotidoctor.reports.headline import WATCHED
from aotidoctor.reports.run_view import first_failed, last_words, run_ending
from aotidoctor.reports.text import one_line

_FAULTS_SHOWN = 4
_OF_INPUTS = ("input_rank", "input_dtype")
# What failed here has not seen an input, and has no numbers to compare.
_BEFORE_CALL = ("start", "import", "setup", "load", "after_load")


@record
class Row:
    """A labelled line of the first screen; ``is_code`` marks text to copy."""

    label: str
    text: str
    is_code: bool = False


def first_rows(report: Report) -> tuple[Row, ...]:
    """The labelled lines under the headline, in the order in which they are read."""
    if report.cannot_examine is not None:
        return ()  # The headline has said it all.
    if report.compat is not None:
        return _compat_rows(report)
    rows: tuple[Row, ...] = ()
    if report.diagnoses:
        rows = _diagnosis_rows(report, report.diagnoses[0])
    elif report.verdict == "unknown" and report.internal_error is None:
        rows = _unknown_rows(report)
    return (*rows, *_seen_before(report), *_own_failures(report))


def first_lines(report: Report) -> list[str]:
    """What stands under the headline, as plain lines."""
    rows = [f"{row.label}: {row.text}" if row.label else row.text for row in first_rows(report)]
    return [line for line in (partial_note(report), *rows) if line]


def _seen_before(report: Report) -> tuple[Row, ...]:
    """What a store of cases knows of the failure."""
    return (Row(label="Seen before", text=history_view.told(report.history)),) if report.history is not None else ()


def _own_failures(report: Report) -> tuple[Row, ...]:
    """What aotidoctor itself could not do: of no weight for the verdict, and no secret."""
    names = [item.name for item in report.not_checked if item.is_fault]
    if not names:
        return ()
    shown = listed(names, _FAULTS_SHOWN)
    return (Row(label="Failed here", text=f"{shown}: an error of aotidoctor, not of the model (see Not checked)"),)


def _compat_rows(report: Report) -> tuple[Row, ...]:
    """The way out of the first cause; the reasons stand in the table."""
    if not report.diagnoses:
        return ()
    remedy = report.diagnoses[0].remedy
    rows = (
        Row(label="What to do", text=one_line(remedy.text, 600)),
        Row(label="", text=remedy.command, is_code=True),
    )
    return tuple(row for row in rows if row.text)


def _diagnosis_rows(report: Report, diagnosis: Diagnosis) -> tuple[Row, ...]:
    rows = [
        *_program_rows(report),
        Row(label="Subject", text=one_line(diagnosis.subject or "")),
        Row(label="Looked like", text=one_line(diagnosis.looked_like)),
        Row(label="Is", text=what_it_is(report, diagnosis)),
        Row(label="How sure", text=how_sure(diagnosis)),
        Row(label="What to do", text=one_line(diagnosis.remedy.text, 600)),
        Row(label="", text=diagnosis.remedy.command, is_code=True),
        Row(label="", text="Tried: with it the failure is gone." if diagnosis.remedy.verified else ""),
        Row(label="Not checked", text=_inputs_not_checked(report)),
        *_after_a_log(report),
    ]
    return tuple(row for row in rows if row.text)


def _after_a_log(report: Report) -> list[Row]:
    """A log leaves every cause suspected: what would settle it."""
    steps = log_view.next_steps(report) if log_view.is_log(report) else ()
    return [Row(label="" if at else "Try next", text=step) for at, step in enumerate(steps[:2])]


def _inputs_not_checked(report: Report) -> str:
    """Of a program whose inputs nobody has seen: what it says may be a symptom of them."""
    alone = WATCHED in report.extra and len(report.runs) < 2 and report.case.inputs is None
    if not alone or not has_artifact(report) or report.diagnoses[0].stage not in ("run", "output"):
        return ""
    how = "guard(inputs=...)" if report.command == "guard" else "--rerun switches the package's own checks on"
    return f"whether its inputs are what the package was compiled for: {how}"


def _program_rows(report: Report) -> list[Row]:
    """Of a program that was watched: how it ended."""
    if WATCHED not in report.extra or not report.runs:
        return []
    ended = next((f"{item.subject}: {item.observed}" for item in report.findings if item.code == "AD-RUN-033"), "")
    return [Row(label="Program", text=one_line(ended, 200))]


def what_it_is(report: Report, diagnosis: Diagnosis) -> str:
    """Observed and expected of the most telling evidence that the diagnosis rests on."""
    found = telling(report, diagnosis)
    if found is None:
        return ""
    if log_view.is_log(report) and found.code.startswith("AD-LOG"):
        # What was observed is the line that it looked like.
        return f"{one_line(diagnosis.title)} [{diagnosis.evidence[0]}]"
    parts = (
        found.observed and f"observed {one_line(found.observed, 160)}",
        found.expected and f"expected {one_line(found.expected, 160)}",
    )
    return ", ".join(part for part in parts if part) + f" [{found.id}]"


def telling(report: Report, diagnosis: Diagnosis) -> Evidence | None:
    """The first evidence of a diagnosis that says more than what it looked like; else the first that says anything."""
    found = [item for item in evidence_of(report, diagnosis) if item.observed or item.expected]
    more = (item for item in found if not item.observed or item.observed not in diagnosis.looked_like)
    return next(more, found[0] if found else None)


def evidence_of(report: Report, diagnosis: Diagnosis) -> tuple[Evidence, ...]:
    """The findings that ``diagnosis`` names, in its order."""
    by_id = {finding.id: finding for finding in report.findings}
    return tuple(by_id[name] for name in diagnosis.evidence if name in by_id)


def how_sure(diagnosis: Diagnosis) -> str:
    """``confirmed`` with what was run for it, or ``suspected`` with what would confirm it."""
    percent = f"{diagnosis.confidence:.0%}"
    if diagnosis.status is Status.CONFIRMED:
        because = one_line(diagnosis.confirmation) or "gone with the treatment, back without it"
        return f"confirmed ({percent}): {because}"
    if diagnosis.status is Status.EMULATED:
        return f"confirmed in emulation, not on hardware ({percent}): {one_line(diagnosis.confirmation)}"
    more = one_line(diagnosis.would_confirm)
    return f"suspected ({percent})" + (f"; to confirm: {more}" if more else "")


def _unknown_rows(report: Report) -> tuple[Row, ...]:
    if log_view.is_log(report):
        return tuple(Row(label=label, text=text) for label, text in log_view.unknown_rows(report))
    failed = first_failed(report.runs)
    rows = [Row(label="Fails in", text=report.stage)] if report.stage else []
    if WATCHED in report.extra:
        rows += [*_program_rows(report), Row(label="Says", text=last_words(report.runs[0]))]
    elif failed is not None:
        rows.append(Row(label="Known", text=f"{run_ending(failed)} in {failed.stage} [{failed.id}]"))
        rows.append(Row(label="Says", text=last_words(failed)))
    else:
        rows.append(Row(label="Known", text=_first_error(report)))
    rows.append(Row(label="Not told", text=_untold_inputs(report)))
    rows = [row for row in rows if row.text]
    rows.extend(
        Row(label="Try next" if number == 0 else "", text=text) for number, text in enumerate(next_steps(report))
    )
    return tuple(rows)


def _first_error(report: Report) -> str:
    """What is wrong where every run returned."""
    found = next((item for item in report.findings if item.severity is Severity.ERROR), None)
    return f"{one_line(found.message, 300)} [{found.id}]" if found is not None else ""


def _untold_inputs(report: Report) -> str:
    """Inputs that nothing describes: with others than they were compiled for, kernels read other memory."""
    if report.case.inputs is None:
        return ""
    reasons = (item.reason for item in report.not_checked if item.name in _OF_INPUTS and not item.moot)
    return one_line(next(reasons, ""), 300)


def next_steps(report: Report) -> tuple[str, ...]:
    """What the user can add so that more can be said: only what would change something about this failure."""
    case, steps = report.case, []
    if WATCHED in report.extra:
        return _watched_steps(report)
    failed = first_failed(report.runs)
    called = failed is None or failed.stage not in _BEFORE_CALL
    if called and case.inputs is None and case.inputs_error is None:
        steps.append("pass the inputs it fails with: --inputs FILE (or --generate to generate some)")
    if case.options.skip_rungs or case.options.rungs:
        steps.append("run all probes: without --probes and --skip-probes")
    if case.options.setup is None and case.contract is not None and case.contract.custom_ops:
        steps.append("register its custom operators first: --setup FILE")
    if called and report.runs and case.options.reference is None:
        steps.append("compare with the exported program: --reference exported.pt2")
    shown = "-v shows what the child printed; " if report.runs else ""
    steps.append(f"{shown}-o DIR keeps the report for a bug report")
    return tuple(steps)


def _watched_steps(report: Report) -> tuple[str, ...]:
    """Of a program of the user's: its options are those of watch."""
    if report.command == "guard":
        return ("pass the inputs that it fails with, or their file: guard(inputs=...)",)
    steps = ["run it again under diagnostic settings: --rerun"] if len(report.runs) < 2 else []
    if not has_artifact(report):
        steps.append("name the package that it uses: --package FILE")
    elif report.case.inputs is None:
        steps.append("pass the inputs it fails with: --inputs FILE")
    return (*steps, "-v shows everything; -o DIR keeps the report for a bug report")


def source_text(source: Source | None) -> str:
    """``file:line`` or ``R2 stderr``."""
    match source:
        case FileSource(file=file, line=line):
            return one_line(file, 120) + (f":{line}" if line is not None else "")
        case RunSource(run=run, stream=stream, line=line):
            return f"{run} {stream}" + (f":{line}" if line is not None else "")
        case None:
            return ""


def short_source(source: Source | None) -> str:
    """``source_text`` without folders, and without the middle of a long hash."""
    text = source_text(source).rpartition("/")[2]
    return text if len(text) <= 44 else f"{text[:8]}…{text[-30:]}"


def adds_nothing(finding: Evidence) -> bool:
    """True when the message only repeats what was observed and expected."""
    rest = finding.message
    for told in (finding.observed, finding.expected, finding.subject or ""):
        rest = rest.replace(told, "") if told else rest
    return len(rest) < 40


def command_text(argv: Sequence[str]) -> str:
    """The command, quoted for a shell; the path of the interpreter or script is left out."""
    if not argv:
        return "aotidoctor"
    first = argv[0].rsplit("/", 1)[-1]
    head = "python -m aotidoctor" if first == "__main__.py" else first
    return " ".join((head, *(shlex.quote(word) for word in argv[1:])))


def plugin_rows(report: Report) -> tuple[tuple[str, str], ...]:
    """Which plugins took part, and what they know of the host; nothing where none is installed."""
    names = report.extra.get("plugins")
    facts = [(name.removeprefix("host."), value) for name, value in report.extra.items() if name.startswith("host.")]
    rows = [("Plugins", names), *facts] if names else facts
    return tuple((one_line(label, 80), one_line(text)) for label, text in rows)


def has_artifact(report: Report) -> bool:
    """False where no file was asked for (``env``)."""
    return bool(report.case.artifact.path)


def artifact_text(report: Report) -> str:
    """Path, kind and size on one line."""
    artifact = report.case.artifact
    if artifact.kind is ArtifactKind.MISSING:
        return f"{one_line(artifact.path)} (missing)"
    size = "" if artifact.kind is ArtifactKind.DIRECTORY else f", {artifact.size:,} bytes"
    return f"{one_line(artifact.path)} ({artifact.kind.value}{size})"


def partial_note(report: Report) -> str:
    """Why the report is partial; empty when it is whole."""
    if report.interrupted:
        return "Partial: interrupted."
    return "Partial: time or budget ran out." if report.out_of_time else ""
