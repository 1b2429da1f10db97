"""What every format for people says, as values: the words are here, the layout is in the formats."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.diagnosis import Diagnosis, Status
from aotidoctor.model.evidence import Evidence, FileSource, RunSource, Severity, Source
from aotidoctor.model.report import Report
from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports import contract_view, host_view, log_view, names_view, serving_view
from aotidoctor.reports.text import one_line, plural, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The first line. ``tone`` is ``good``, ``bad``, ``unsure`` or ``partial``."""

    word: str
    text: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A labelled line of the first screen; ``is_code`` marks text to copy."""

    label: str
    text: str
    is_code: bool = False


# Of a report on a program of the user's: its command.
WATCHED = "program"
_AGREEING = ("agrees", "precision")
# Two lines of a terminal: the whole message stands below.
_HEADLINE = 110


def headline(report: Report) -> Headline:
    """Verdict and cause."""
    if report.internal_error is not None:
        last = report.internal_error.strip().splitlines()[-1:] or ["no details"]
        return Headline(word="INTERNAL ERROR", text=f"aotidoctor itself failed: {one_line(last[0])}", tone="partial")
    if report.cannot_examine is not None:
        return Headline(word="CANNOT EXAMINE", text=one_line(report.cannot_examine), tone="partial")
    match report.verdict:
        case "healthy" if report.log is not None and log_view.is_log(report):
            return Headline(word="NO FAILURE", text=log_view.calm(report.log), tone="good")
        case "healthy" if WATCHED in report.extra:
            return Headline(word="HEALTHY", text=f"the program ended well{_warnings(report)}", tone="good")
        case "healthy":
            return _calm(report)
        case "problem" if report.diagnoses:
            first = report.diagnoses[0]
            harmless = first.severity is not Severity.ERROR
            text = f"{first.cause}: {_cut(one_line(first.title, 4 * _HEADLINE))}"
            return Headline(word="WARNING" if harmless else "PROBLEM", text=text, tone="unsure" if harmless else "bad")
        case "problem":
            text = one_line(report.extra.get("origin") or "see the evidence")
            return Headline(word="PROBLEM", text=_cut(text), tone="bad")
        case _ if report.log is not None and log_view.is_log(report):
            return Headline(word="UNKNOWN", text=log_view.unknown(report.log), tone="unsure")
        case _ if not any(outcome_failed(outcome) for outcome in report.runs):
            return Headline(word="UNKNOWN", text="no verdict could be reached", tone="unsure")
        case _:
            return Headline(word="UNKNOWN", text="it fails, and no known cause explains why", tone="unsure")


def _calm(report: Report) -> Headline:
    if report.command == "env":
        return Headline(word="HOST", text=host_view.summary(report.case.host), tone="good")
    if report.command == "inspect":
        return Headline(word="PACKAGE", text=contract_view.summary(report.case), tone="good")
    if serving_view.is_serving(report):
        return _servable(report)
    if report.command == "verify" and not report.interrupted:
        return Headline(word="HEALTHY", text=f"{_verified(report)}{_warnings(report)}", tone="good")
    if report.interrupted or report.out_of_time:
        return Headline(word="UNFINISHED", text="nothing wrong found before it ended", tone="partial")
    if report.plan:
        return Headline(word="PLAN", text=f"{plural(len(report.plan), 'rung')}; nothing was run", tone="good")
    if report.command == "compare" and (found := _compared(report)) is not None:
        return Headline(word="HEALTHY", text=f"{_also_said(found)}{_warnings(report)}", tone="good")
    if not report.runs:
        return Headline(word="HEALTHY", text="nothing wrong found; nothing was run", tone="good")
    calls = sum(1 for outcome in report.runs if not outcome_failed(outcome))
    if report.case.inputs is None:
        return Headline(word="HEALTHY", text="it loads; nothing was called without --inputs or --generate", tone="good")
    return Headline(
        word="HEALTHY", text=f"nothing wrong found in {plural(calls, 'run')}{_warnings(report)}", tone="good"
    )


def _servable(report: Report) -> Headline:
    if report.names is not None:
        return Headline(word="SERVABLE", text=names_view.summary(report), tone="good")
    return Headline(word="HEALTHY", text=f"{serving_view.summary(report)}{_warnings(report)}", tone="good")


def _verified(report: Report) -> str:
    own = (item for item in report.findings if not item.code.startswith("VERIFY-P"))
    notes = len([item for item in own if item.severity is Severity.INFO])
    origin = f"; {one_line(report.extra['origin'])}" if report.extra.get("origin") else ""
    said = "PyTorch's verifier passes it" if report.extra.get("verifier") == "passes" else "no rule is broken"
    return f"{said}; {plural(notes, 'note')} for AOTInductor{origin}"


def _warnings(report: Report) -> str:
    warnings = sum(1 for finding in report.findings if finding.severity is Severity.WARN)
    return f"; {plural(warnings, 'warning')}" if warnings else ""


def _compared(report: Report) -> Evidence | None:
    """What the comparison of the outputs found."""
    return next((item for item in report.findings if item.code == "AD-RUN-011" and item.kind in _AGREEING), None)


def _also_said(found: Evidence) -> str:
    """Agreement needs no numbers; where rounding makes a difference, they are what was asked for."""
    if found.kind == "agrees":
        return f"the package agrees with the reference: {_cut(one_line(found.observed, 4 * _HEADLINE))}"
    return f"rounding only: {found.subject}: {_cut(one_line(found.observed, 4 * _HEADLINE))}"


def _cut(line: str) -> str:
    return line if len(line) <= _HEADLINE else f"{line[:_HEADLINE].rstrip()}…"


def outcome_failed(outcome: Outcome) -> bool:
    """True unless the child ended by itself with its done-marker and without an exception."""
    match outcome.ending:
        case Exited(code=0, done=True):
            return outcome.error is not None
        case _:
            return True


def first_rows(report: Report) -> tuple[Row, ...]:
    """The labelled lines under the headline, in the order in which they are read."""
    if report.cannot_examine is not None:
        return ()  # The headline has said it all.
    if report.diagnoses:
        return _diagnosis_rows(report, report.diagnoses[0])
    if report.verdict == "unknown" and report.internal_error is None:
        return _unknown_rows(report)
    return ()


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
        Row(label="Not asked", text=_not_asked(report)),
    ]
    return tuple(row for row in rows if row.text)


def _not_asked(report: Report) -> str:
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
    more = one_line(diagnosis.would_confirm)
    return f"suspected ({percent})" + (f"; to confirm: {more}" if more else "")


def _unknown_rows(report: Report) -> tuple[Row, ...]:
    if log_view.is_log(report):
        return tuple(Row(label=label, text=text) for label, text in log_view.unknown_rows(report))
    failed = next((outcome for outcome in report.runs if outcome_failed(outcome)), None)
    rows = [Row(label="Fails in", text=report.stage)] if report.stage else []
    if WATCHED in report.extra:
        rows += [*_program_rows(report), Row(label="Says", text=_last_words(report.runs[0]))]
    elif failed is not None:
        rows.append(Row(label="Known", text=f"{run_ending(failed)} in {failed.stage} [{failed.id}]"))
        rows.append(Row(label="Says", text=_last_words(failed)))
    rows = [row for row in rows if row.text]
    rows.extend(
        Row(label="Try next" if number == 0 else "", text=text) for number, text in enumerate(next_steps(report))
    )
    return tuple(rows)


def _last_words(outcome: Outcome) -> str:
    if outcome.error is not None:
        return one_line(f"{outcome.error.type}: {outcome.error.message}")
    return one_line((outcome.stderr_tail.strip().splitlines() or [""])[-1])


def next_steps(report: Report) -> tuple[str, ...]:
    """What the user can add so that more can be said."""
    case, steps = report.case, []
    if WATCHED in report.extra:
        return _watched_steps(report)
    if case.inputs is None and case.inputs_error is None:
        steps.append("give the inputs it fails with: --inputs FILE (or --generate to make some)")
    if case.options.skip_rungs or case.options.rungs:
        steps.append("run all rungs: without --rungs and --skip-rungs")
    if case.options.setup is None and case.contract is not None and case.contract.custom_ops:
        steps.append("register its custom operators first: --setup FILE")
    if case.options.reference is None:
        steps.append("compare with the exported program: --reference exported.pt2")
    steps.append("-v shows what the child printed; -o DIR keeps the report for a bug report")
    return tuple(steps)


def _watched_steps(report: Report) -> tuple[str, ...]:
    """Of a program of the user's: its options are those of watch."""
    if report.command == "guard":
        return ("give the inputs that it fails with, or their file: guard(inputs=...)",)
    steps = ["run it again under settings that say more: --rerun"] if len(report.runs) < 2 else []
    if not has_artifact(report):
        steps.append("name the package that it uses: --package FILE")
    elif report.case.inputs is None:
        steps.append("give the inputs it fails with: --inputs FILE")
    return (*steps, "-v shows all that is known; -o DIR keeps the report for a bug report")


def ending_text(ending: Ending) -> str:
    """How a child ended, in a few words."""
    match ending:
        case Exited(code=0, done=True):
            return "ok"
        case Exited(code=code, done=done):
            return f"exit {code}" + ("" if done else " without a result")
        case Signalled(name=name, by_us=by_us, core_dumped=core):
            return name + (" (sent by aotidoctor)" if by_us else "") + (", core dumped" if core else "")
        case TimedOut(limit=limit):
            return f"no end within {seconds(limit)}"
        case OutOfMemory(reason=reason):
            return f"out of memory ({one_line(reason, 80)})"
        case NotStarted(reason=reason):
            return f"not started ({one_line(reason, 80)})"


def run_ending(outcome: Outcome) -> str:
    """``ending_text``, or ``raised Type`` when the worker caught an exception."""
    if outcome.error is not None:
        return f"raised {one_line(outcome.error.type, 60)}"
    if outcome.request.job == "watch" and isinstance(outcome.ending, Exited):
        # A program of the user's knows nothing of done-markers.
        return f"exit {outcome.ending.code}" if outcome.ending.code else "ok"
    return ending_text(outcome.ending)


def took_effect(outcome: Outcome) -> str:
    """``yes``, ``no`` or ``unknown`` where the run changed a setting; empty where it changed none."""
    if outcome.took_effect is None:
        return "unknown" if outcome.request.env else ""
    return "yes" if outcome.took_effect else "no"


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


def env_text(env: Mapping[str, str | None]) -> str:
    """Changes of the environment as a shell writes them."""
    return " ".join(
        f"{name}={shlex.quote(value)}" if value is not None else f"-u {name}" for name, value in env.items()
    )


def command_text(argv: Sequence[str]) -> str:
    """The command, quoted for a shell; the path of the interpreter or script is left out."""
    if not argv:
        return "aotidoctor"
    first = argv[0].rsplit("/", 1)[-1]
    head = "python -m aotidoctor" if first == "__main__.py" else first
    return " ".join((head, *(shlex.quote(word) for word in argv[1:])))


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
