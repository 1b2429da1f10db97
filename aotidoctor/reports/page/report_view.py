"""Choose what every format for people says of a report: headline, cause, what to do. The formats lay it out.

The headline is the first line: the verdict, and what it is about. The rows below it are labelled text.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.evidence import Evidence, FileSource, RunSource, Severity, Source, list_names, plural
from aotidoctor.model.record import record
from aotidoctor.model.report import UNSTATED, Diagnosis, Remedy, Report, Status
from aotidoctor.reports import package_view
from aotidoctor.reports.executorch_view import executorch_summary, precompiled_summary
from aotidoctor.reports.page import log_page, serving_page
from aotidoctor.reports.page.run_page import first_failed, last_words, outcome_failed, run_ending, samples_text
from aotidoctor.reports.text import Headline, one_line

if TYPE_CHECKING:
    from aotidoctor.model.case import SeenBefore
    from aotidoctor.model.fleet import Compatibility


# How often the failure was seen before.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def day_text(at: str) -> str:
    """``2026-09-03T10:00:00Z`` as ``3 September 2026``."""
    year, month, date = at[:4], at[5:7], at[8:10]
    if not (year + month + date).isdecimal() or not 1 <= int(month) <= 12:
        return at
    return f"{int(date)} {_MONTHS[int(month) - 1]} {year}"


def seen_before_text(history: SeenBefore) -> str:
    """``12 times since 3 September 2026, last on …; solved by … (note of 5 October 2026)``."""
    what = "" if history.of == "exact" else "not this exact failure; its family "
    parts = [what + ("once" if history.count == 1 else f"{history.count:,} times")]
    if history.count:
        parts[0] += f" {'on' if history.count == 1 else 'since'} {day_text(history.since)}"
        last = [] if history.count == 1 or history.last[:10] == history.since[:10] else [day_text(history.last)]
        last += [f"on {one_line(history.host_class)}"] if history.host_class else []
        parts[0] += f", last {' '.join(last)}" if last else ""
    if history.solved is not None:
        parts.append(f"solved by: {one_line(history.solved.text, 300)} (note of {day_text(history.solved.at)})")
    elif history.notes:
        parts.append(f"{plural(history.notes, 'note')}: aotidoctor cases show {history.number}")
    return "; ".join(parts)


# The headline. Of a report on a program of the user's: its command.
WATCHED = "program"
_AGREEING = ("agrees", "precision")
# A device that this host lacks.
_NO_DEVICE = "AD-HOST-003"
_HEADLINE = 440


def headline(report: Report) -> Headline:
    """Verdict and cause."""
    if report.internal_error is not None:
        last = report.internal_error.strip().splitlines()[-1:] or ["no details"]
        return Headline("INTERNAL ERROR", f"aotidoctor itself failed: {one_line(last[0])}", "partial")
    if report.cannot_examine is not None:
        return Headline("CANNOT EXAMINE", one_line(report.cannot_examine), "partial")
    if report.compat is not None:
        from aotidoctor.reports.page.compared_page import compat_headline

        return compat_headline(report.compat)
    match report.verdict:
        case "healthy" if report.log is not None and log_page.is_log(report):
            return Headline("NO FAILURE", log_page.log_without_failure(report.log), "good")
        case "healthy" if report.samples is not None and not (report.interrupted or report.out_of_time):
            return Headline("HEALTHY", f"{samples_text(report.samples)}{_warnings(report)}", "good")
        case "healthy" if WATCHED in report.extra:
            return Headline("HEALTHY", f"the program succeeded{_warnings(report)}", "good")
        case "healthy":
            return _calm(report)
        case "problem" if report.diagnoses:
            first = report.diagnoses[0]
            harmless = first.severity is not Severity.ERROR
            text = f"{first.cause}: {one_line(first.title, _HEADLINE)}"
            return Headline("WARNING" if harmless else "PROBLEM", text, "unsure" if harmless else "bad")
        case "problem":
            text = one_line(report.extra.get("origin") or "see the evidence")
            return Headline("PROBLEM", text, "bad")
        case _:
            return Headline("UNKNOWN", _unknown(report), "unsure")


def _unknown(report: Report) -> str:
    if report.diagnoses:
        # No cause is sure enough to be named.
        return f"perhaps {report.diagnoses[0].cause}: {one_line(report.diagnoses[0].title)}"
    if report.log is not None and log_page.is_log(report):
        return log_page.log_unknown(report.log)
    if "unjudged" in report.extra:
        return f"nothing wrong found; {report.extra['unjudged']}"
    if not any(outcome_failed(outcome) for outcome in report.runs):
        return "no verdict could be reached"
    return "it fails, and no known cause explains why"


def is_unexamined(report: Report) -> bool:
    """Whether the headline is all there is to say: what was to be examined is not there."""
    if report.cannot_examine is None or report.runs or (report.compat is not None and len(report.compat.needs) > 1):
        return False
    return report.case.contract is None or report.cannot_examine.startswith("no such file")


def is_other_file(report: Report) -> bool:
    """Whether the file is none of those that are examined: what it is and what to do with it is all there is to say."""
    return report.command != "compat" and bool(report.diagnoses) and report.diagnoses[0].cause == "artifact-wrong-kind"


def _calm(report: Report) -> Headline:
    if report.command == "env":
        return Headline("HOST", package_view.host_summary(report.case.host), "good")
    if report.command == "inspect":
        return Headline("PACKAGE", package_view.contract_summary(report.case), "good")
    if serving_page.is_serving(report):
        if report.names is not None:
            return Headline("SERVABLE", serving_page.names_summary(report), "good")
        return Headline("HEALTHY", f"{serving_page.serving_summary(report)}{_warnings(report)}", "good")
    if report.command == "verify" and not report.interrupted:
        own = (item for item in report.findings if not item.code.startswith("VERIFY-P"))
        notes = len([item for item in own if item.severity is Severity.INFO])
        origin = f"; {one_line(report.extra['origin'])}" if report.extra.get("origin") else ""
        passes = "PyTorch's verifier passes it" if report.extra.get("verifier") == "passes" else "no rule is broken"
        text = f"{passes}; {plural(notes, 'note')} for AOTInductor{origin}"
        return Headline("HEALTHY", f"{text}{_warnings(report)}", "good")
    if report.interrupted or report.out_of_time:
        return Headline("UNFINISHED", "nothing wrong found before it ended", "partial")
    if report.plan:
        return Headline("PLAN", f"{plural(len(report.plan), 'probe')}; nothing was run", "good")
    is_emulated = any(item.code == _NO_DEVICE and item.facts.get("emulated") for item in report.findings)
    # What the comparison of the outputs found.
    if (
        report.command == "compare"
        and (
            found := next(
                (item for item in report.findings if item.code == "AD-RUN-011" and item.kind in _AGREEING), None
            )
        )
        is not None
    ):
        # Agreement needs no numbers; where rounding makes a difference, they are what the user wants to see.
        what = "the package agrees with the reference" if found.kind == "agrees" else f"rounding only: {found.subject}"
        numbers = one_line(found.observed, _HEADLINE)
        what = f"in emulation, {what}" if is_emulated else what
        return Headline("HEALTHY", f"{what}: {numbers}{_warnings(report)}", "good")
    if not report.runs:
        return Headline("HEALTHY", f"nothing wrong found; nothing was run{_warnings(report)}", "good")
    if is_emulated:
        return Headline("HEALTHY", f"in emulation; this host cannot run it{_warnings(report)}", "good")
    calls = sum(1 for outcome in report.runs if not outcome_failed(outcome))
    if report.case.inputs is None:
        return Headline("HEALTHY", "it loads; nothing was called without --inputs or --generate", "good")
    return Headline("HEALTHY", f"nothing wrong found in {plural(calls, 'run')}{_warnings(report)}", "good")


def _warnings(report: Report) -> str:
    warnings = sum(1 for finding in report.findings if finding.severity is Severity.WARN)
    return f"; {plural(warnings, 'warning')}" if warnings else ""


# The rows of the first screen.
_FAULTS_LISTED = 4
_FAULT = "an error of aotidoctor, not of the model (see Not checked)"
_OF_INPUTS = ("input_rank", "input_dtype")
# What failed here has not seen an input, and has no numbers to compare.
_BEFORE_CALL = ("start", "import", "setup", "load", "after_load")


@record(kw_only=False)
class LabelledLine:
    """A labelled line of the first screen; ``is_code`` marks text to copy."""

    label: str
    text: str
    is_code: bool = False


_STATE = (
    "State it: --host {example} adds {what} of others; or save the profile of that host itself there, and give the"
    " file to --host here."
)
_LINUX_EXAMPLE = ("debian-12+x86-64-v3+torch-2.13-cpu", "the CPU flags and the torch")


def _compat_rows(report: Report, compat: Compatibility) -> tuple[LabelledLine, ...]:
    """The way out of each cause, and of what is not stated; the reasons stand in the table."""
    refusals = {cause for answer in compat.answers for cause in answer.causes}
    remedies = {item.cause: item.remedy for item in reversed(report.diagnoses) if item.cause in refusals}
    steps = [
        (f"{cause}: {remedy.text}" if len(remedies) > 1 else remedy.text, remedy.command)
        for cause, remedy in reversed(remedies.items())
    ]
    unstated = [one.host for one in compat.answers if any(line.startswith(UNSTATED) for line in one.unknown)]
    if unstated:
        laptops = [host.partition("+")[0] for host in unstated if host.startswith(("windows", "macos"))]
        example, what = (f"{laptops[0]}+torch-2.13-cpu", "the torch") if laptops else _LINUX_EXAMPLE
        steps.append((_STATE.format(example=example, what=what), "aotidoctor env --save host.json"))
    rows: list[LabelledLine] = []
    for text, command in steps:
        rows.append(LabelledLine("" if rows else "What to do", one_line(text, 600)))
        rows.append(LabelledLine("", command, is_code=True))
    return tuple(row for row in rows if row.text)


def first_rows(report: Report) -> tuple[LabelledLine, ...]:
    """The labelled lines under the headline, in the order in which they are read."""
    if report.cannot_examine is not None:
        return ()  # The headline has said it all.
    if report.compat is not None:
        return _compat_rows(report, report.compat)
    rows: tuple[LabelledLine, ...] = ()
    if report.diagnoses:
        rows = _diagnosis_rows(report, report.diagnoses[0])
    elif report.verdict == "unknown" and report.internal_error is None:
        rows = _unknown_rows(report)
    faults = [item.name for item in report.not_checked if item.is_fault]
    # What a store of cases knows of the failure.
    return (
        *rows,
        *((LabelledLine("Samples", samples_text(report.samples)),) if report.samples is not None and rows else ()),
        *((LabelledLine("Seen before", seen_before_text(report.history)),) if report.history is not None else ()),
        # What aotidoctor itself could not do: of no weight for the verdict, and no secret.
        *((LabelledLine("Failed here", f"{list_names(faults, _FAULTS_LISTED)}: {_FAULT}"),) if faults else ()),
    )


def first_lines(report: Report) -> list[str]:
    """The lines below the headline, as plain text."""
    rows = [f"{row.label}: {row.text}" if row.label else row.text for row in first_rows(report)]
    return [line for line in (partial_note(report), *rows) if line]


def _diagnosis_rows(report: Report, diagnosis: Diagnosis) -> tuple[LabelledLine, ...]:
    # A log leaves every cause suspected: what would settle it.
    steps = log_page.log_next_steps(report) if log_page.is_log(report) else ()
    # Of a program whose inputs nobody has seen: what it says may be a symptom of them.
    alone = WATCHED in report.extra and len(report.runs) < 2 and report.case.inputs is None
    if not alone or not has_artifact(report) or report.diagnoses[0].stage not in ("run", "output"):
        inputs_not_checked = ""
    else:
        how = "guard(inputs=...)" if report.command == "guard" else "--rerun switches the package's own checks on"
        inputs_not_checked = f"whether its inputs are what the package was compiled for: {how}"
    rows = [
        *_program_rows(report),
        LabelledLine("Subject", one_line(diagnosis.subject or "")),
        LabelledLine("Looked like", one_line(diagnosis.looked_like)),
        LabelledLine("Perhaps" if report.verdict == "unknown" else "Is", what_it_is(report, diagnosis)),
        LabelledLine("How sure", how_sure(diagnosis)),
        LabelledLine("What to do", one_line(diagnosis.remedy.text, 600)),
        LabelledLine("", diagnosis.remedy.command, is_code=True),
        LabelledLine("", one_line(tried_line(diagnosis.remedy), 600)),
        LabelledLine("Not checked", inputs_not_checked),
        *[LabelledLine("" if at else "Try next", step) for at, step in enumerate(steps[:2])],
    ]
    return tuple(row for row in rows if row.text)


def tried_line(remedy: Remedy) -> str:
    """Whether the remedy was tried, and what came of it, as a sentence; empty where that is no question."""
    if remedy.tried:
        return f"{remedy.tried[:1].upper()}{remedy.tried[1:]}."
    return "Tried: with it the failure is gone." if remedy.verified else ""


def _program_rows(report: Report) -> list[LabelledLine]:
    """Of a program that was watched: how it ended."""
    if WATCHED not in report.extra or not report.runs:
        return []
    ended = next((f"{item.subject}: {item.observed}" for item in report.findings if item.code == "AD-RUN-033"), "")
    return [LabelledLine("Program", one_line(ended))]


def what_it_is(report: Report, diagnosis: Diagnosis) -> str:
    """Observed and expected of the most telling evidence that the diagnosis rests on."""
    found = decisive_evidence(report, diagnosis)
    if found is None:
        return ""
    if log_page.is_log(report) and found.code.startswith("AD-LOG"):
        # What was observed is the line that it looked like.
        return f"{one_line(diagnosis.title)} [{diagnosis.evidence[0]}]"
    parts = (
        found.observed and f"observed {one_line(found.observed)}",
        found.expected and f"expected {one_line(found.expected)}",
    )
    return ", ".join(part for part in parts if part) + f" [{found.id}]"


def decisive_evidence(report: Report, diagnosis: Diagnosis) -> Evidence | None:
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


def _unknown_rows(report: Report) -> tuple[LabelledLine, ...]:
    if log_page.is_log(report):
        return tuple(LabelledLine(label, text) for label, text in log_page.log_unknown_rows(report))
    failed = first_failed(report.runs)
    rows = [LabelledLine("Fails in", report.stage)] if report.stage else []
    if WATCHED in report.extra:
        rows += [*_program_rows(report), LabelledLine("Says", last_words(report.runs[0]))]
    elif failed is not None:
        rows.append(LabelledLine("Known", f"{run_ending(failed)} in {failed.stage} [{failed.id}]"))
        rows.append(LabelledLine("Says", last_words(failed)))
    else:
        # What is wrong where every run returned.
        found = next((item for item in report.findings if item.severity is Severity.ERROR), None)
        rows.append(
            LabelledLine("Known", (f"{one_line(found.message, 300)} [{found.id}]" if found is not None else ""))
        )
    # Inputs that nothing describes: with others than they were compiled for, kernels read other memory.
    if report.case.inputs is None:
        unknown_inputs = ""
    else:
        reasons = (item.reason for item in report.not_checked if item.name in _OF_INPUTS and not item.moot)
        unknown_inputs = one_line(next(reasons, ""), 300)
    rows.append(LabelledLine("Not told", unknown_inputs))
    rows = [row for row in rows if row.text]
    rows.extend(LabelledLine("Try next" if number == 0 else "", text) for number, text in enumerate(next_steps(report)))
    return tuple(rows)


def next_steps(report: Report) -> tuple[str, ...]:
    """Suggest what the user can add: only what would change something about this failure."""
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
    text = "-v shows what the child printed; " if report.runs else ""
    steps.append(f"{text}-o DIR keeps the report for a bug report")
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
            return one_line(file) + (f":{line}" if line is not None else "")
        case RunSource(run=run, stream=stream, line=line):
            return f"{run} {stream}" + (f":{line}" if line is not None else "")
        case None:
            return ""


def short_source(source: Source | None) -> str:
    """``source_text`` without folders."""
    return source_text(source).rpartition("/")[2]


def adds_nothing(finding: Evidence) -> bool:
    """True when the message only repeats what was observed and expected."""
    rest = finding.message
    for known in (finding.observed, finding.expected, finding.subject or ""):
        rest = rest.replace(known, "") if known else rest
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
    return tuple((one_line(label), one_line(text)) for label, text in rows)


def has_artifact(report: Report) -> bool:
    """Whether the report is about a file; False for ``env``."""
    return bool(report.case.artifact.path)


def artifact_text(report: Report) -> str:
    """Path, kind and size on one line."""
    artifact = report.case.artifact
    if artifact.kind is ArtifactKind.MISSING:
        return f"{one_line(artifact.path)} (missing)"
    size = "" if artifact.kind is ArtifactKind.DIRECTORY else f", {artifact.size:,} bytes"
    # The headline of `inspect` says it.
    what = ""
    if report.command != "inspect" or report.diagnoses:
        what = f": {executorch_summary(artifact.executorch)}" if artifact.executorch is not None else ""
        what = f": {precompiled_summary(artifact.precompiled)}" if artifact.precompiled is not None else what
    return f"{one_line(artifact.path)} ({artifact.kind.value}{size}){what}"


def partial_note(report: Report) -> str:
    """Why the report is partial; empty when it is whole."""
    if report.interrupted:
        return "Partial: interrupted."
    return "Partial: time or budget ran out." if report.out_of_time else ""
