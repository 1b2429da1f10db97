"""Describe child runs, the table of probes and many samples, and write their sections.

The table of probes is AD-RUN-029: how often each probe failed, how, where, and whether its setting took effect.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aotidoctor.model.evidence import plural
from aotidoctor.model.fleet import OutputStatistics, Samples
from aotidoctor.model.report import NOT_CONFINED, Report
from aotidoctor.model.run import Ending, Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports.page.blocks import (
    HTML,
    MARKDOWN,
    TERMINAL,
    Block,
    Cell,
    Folded,
    NoteBlock,
    OutputBlock,
    Pairs,
    Span,
    TableBlock,
    TableLine,
    Words,
    code_words,
    text_lines,
)
from aotidoctor.reports.text import head, one_line, seconds, tail


# How child runs ended.
def outcome_failed(outcome: Outcome) -> bool:
    """True unless the child ended by itself with its done-marker and without an exception."""
    match outcome.ending:
        case Exited(code=0, done=True):
            return outcome.error is not None
        case _:
            return True


def first_failed(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The first run that failed."""
    return next(filter(outcome_failed, outcomes), None)


def ending_text(ending: Ending) -> str:
    """Describe the end of a child in a few words."""
    match ending:
        case Exited(code=0, done=True):
            return "ok"
        case Exited(code=code, done=done):
            return f"exit {code}" + ("" if done else " without a result")
        case Signalled(name=name, core_dumped=core):
            return name + (", core dumped" if core else "")
        case TimedOut(limit=limit):
            return f"no end within {seconds(limit)}"
        case OutOfMemory(reason=reason):
            return f"out of memory ({one_line(reason)})"
        case NotStarted(reason=reason):
            return f"not started ({one_line(reason)})"


def run_ending(outcome: Outcome) -> str:
    """``ending_text``, or ``raised Type`` when the worker caught an exception."""
    if outcome.error is not None:
        return f"raised {one_line(outcome.error.type)}"
    if outcome.request.job == "watch" and isinstance(outcome.ending, Exited):
        # A program of the user's knows nothing of done-markers.
        return f"exit {outcome.ending.code}" if outcome.ending.code else "ok"
    return ending_text(outcome.ending)


def took_effect(outcome: Outcome) -> str:
    """``yes``, ``no`` or ``unknown`` where the run changed a setting; empty where it changed none."""
    if outcome.took_effect is None:
        return "unknown" if outcome.request.env else ""
    return "yes" if outcome.took_effect else "no"


def env_text(env: Mapping[str, str | None]) -> str:
    """Changes of the environment as a shell writes them."""
    return " ".join(
        f"{name}={shlex.quote(value)}" if value is not None else f"-u {name}" for name, value in env.items()
    )


def last_words(outcome: Outcome) -> str:
    """The exception, or the last line that was printed."""
    if outcome.error is not None:
        return one_line(f"{outcome.error.type}: {outcome.error.message}")
    return one_line((outcome.stderr_tail.strip().splitlines() or [""])[-1])


_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def took_text(seconds: float | None) -> str:
    """``1.5 ms``; kernels take microseconds."""
    if seconds is None:
        return ""
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


# The table of probes.
PROBES_CODE = "AD-RUN-029"
PROBE_HEADINGS = ("Probe", "Failed", "How", "Where", "Setting acted")
_ACTED = {True: "yes", False: "no", None: "unknown"}


def probe_rows(report: Report) -> list[tuple[str, ...]]:
    """One row per probe in the order of the ladder; empty where there is no such table."""
    found = next((item for item in report.findings if item.code == PROBES_CODE), None)
    if found is None:
        return []
    values = [found.facts.get(name) for name in ("rungs", "failed", "runs", "seen", "places", "took_effect")]
    columns = [value if isinstance(value, tuple) else () for value in values]
    return [
        (
            str(probe),
            f"{failed} of {runs}",
            one_line(str(seen)),
            one_line(str(place)),
            # The plain run changes nothing.
            "" if probe == "plain_run" else _ACTED.get(acted, "unknown"),
        )
        for probe, failed, runs, seen, place, acted in zip(*columns, strict=False)
    ]


def probes_verdict(report: Report) -> str:
    """State the conclusion from the pattern of failures."""
    found = next((item for item in report.findings if item.code == PROBES_CODE), None)
    return "" if found is None else one_line(found.observed.partition(": ")[0])


# The sections.
_NOISE = re.compile(
    r"^frame #\d+: |^<omitting python frames>|[/\\]aotidoctor[/\\]worker[/\\]|^Extension modules: |^\s*$"
)
_ENDINGS = 12
_RUNS = 200
# Characters of what runs printed: by detail of each stream, and of all together.
_ROOM = (400, 4000, 20_000)
_ROOM_OF_ALL = 240_000
_STREAMS = 5


def probe_blocks(report: Report, _detail: int) -> tuple[Block, ...]:
    """The pattern of failures over the probes; on a page also one column per way to end, with the runs in the cells."""
    rows = probe_rows(report)
    verdict = probes_verdict(report)
    table = TableBlock(label="Probes", headings=PROBE_HEADINGS, rows=text_lines(rows))
    pattern = (NoteBlock(words=verdict, formats=HTML), table) if rows else ()
    endings = list(dict.fromkeys(map(run_ending, report.runs)))[:_ENDINGS]
    probes: dict[str, list[Outcome]] = {}
    for outcome in report.runs:
        probes.setdefault(outcome.request.probe, []).append(outcome)
    matrix = TableBlock(
        label="Probes and how they ended",
        headings=("Probe", *endings, "Setting acted"),
        rows=tuple(_probe_line(name, runs, endings) for name, runs in probes.items()),
        look="matrix",
        formats=HTML,
    )
    return (*((matrix,) if probes else ()), *pattern)


def _probe_line(name: str, runs: list[Outcome], endings: list[str]) -> TableLine:
    purpose = runs[0].request.purpose if len({outcome.request.purpose for outcome in runs}) == 1 else ""
    words = dict.fromkeys(took_effect(outcome) for outcome in runs if outcome.request.env)
    acted = Cell(", ".join(word for word in words if word), "dim" if set(words) <= {"yes", ""} else "unsure")
    return TableLine(
        (
            Cell((Span(name, "code"), *((Span(f" {purpose}", "dim"),) if purpose else ()))),
            *(_ending_cell(runs, ending) for ending in endings),
            acted,
        )
    )


def _ending_cell(runs: list[Outcome], ending: str) -> Cell:
    """The runs that ended so; a crash or an exception is red, an end as it should be is green."""
    here = [outcome for outcome in runs if run_ending(outcome) == ending]
    if not here:
        return Cell("")
    failed = [outcome for outcome in here if outcome_failed(outcome)]
    names = tuple(Span(outcome.id, link=outcome.id) for outcome in here[:20])
    parts = tuple(part for name in names for part in (name, Span(" ")))
    places = ", ".join(dict.fromkeys(outcome.stage for outcome in failed))
    return Cell((*parts, *((Span(places, "dim"),) if places else ())), "bad" if failed else "good", "outcome")


def run_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """The runs in order; then what the first that failed printed, or with ``detail`` each of them in full."""
    if not report.runs:
        return ()
    runs = report.runs[:_RUNS]
    free = report.extra.get(NOT_CONFINED)
    first = first_failed(runs)
    room = max(300, min(_ROOM[detail], _ROOM_OF_ALL // (_STREAMS * len(runs))))
    more = len(report.runs) - len(runs)
    whole = tuple(_run(outcome, _ROOM[detail] if outcome is first else room) for outcome in runs)
    return (
        runs_table(report),
        *((NoteBlock(words=f"Confined: all but {free}"),) if free else ()),
        *(whole if detail > 0 else _last_words(first) if first is not None else ()),
        *((NoteBlock(words=f"and {plural(more, 'more run')}", tone="dim"),) if more and detail > 0 else ()),
    )


def runs_table(report: Report) -> TableBlock:
    """The runs, one a row."""
    lines = []
    for outcome in report.runs:
        effect = took_effect(outcome)
        if effect and outcome.took_effect_why:
            effect += f": {one_line(outcome.took_effect_why)}"
        cells = (
            Cell((Span(outcome.id, "bold"),)),
            Cell(outcome.request.probe),
            Cell(env_text(outcome.request.env)),
            Cell(run_ending(outcome), "bad" if outcome_failed(outcome) else ""),
            Cell(outcome.stage),
            Cell(seconds(outcome.seconds)),
            Cell(effect),
        )
        lines.append(TableLine(cells))
    return TableBlock(
        label="Runs",
        headings=("", "Probe", "Environment", "Ended", "In", "Time", "Setting took effect"),
        rows=tuple(lines),
        columns_of={"Environment": MARKDOWN},
        bare=("", "Time"),
        formats=TERMINAL + MARKDOWN,
    )


def _last_words(outcome: Outcome) -> tuple[Block, ...]:
    """The telling part: no frames of C++, of this program's own worker, no list of extension modules."""
    error = outcome.error
    printed = (outcome.stderr_tail if error is None else error.message).splitlines()
    text = "\n".join(line for line in printed if not _NOISE.search(line))
    name, content = ("stderr", tail(text, _ROOM[0])) if error is None else ("raised", head(text, 6))
    return (OutputBlock(title=f"{outcome.id} {name}", text=content),) if content.strip() else ()


def _run(outcome: Outcome, room: int) -> Folded:
    failed = outcome_failed(outcome)
    ended = ", ".join((*((f"in {outcome.stage}",) if failed else ()), seconds(outcome.seconds)))
    summary = (
        Span(f"{outcome.id} ", "bold"),
        Span(outcome.request.probe, "code"),
        Span(" "),
        Span(run_ending(outcome), f"end {'bad' if failed else 'good'}"),
        Span(f" {ended}", "dim"),
    )
    # What it said, stream by stream, the end of each.
    error = outcome.error
    streams = (
        ("raised", (error.traceback or f"{error.type}: {error.message}") if error is not None else ""),
        ("stdout", outcome.stdout_tail),
        ("stderr", outcome.stderr_tail),
        ("debugger", outcome.debugger_output),
        ("tool", outcome.tool_output),
    )
    sizes = {"stdout": outcome.stdout_bytes, "stderr": outcome.stderr_bytes}
    printed: list[Block] = []
    for name, text in streams:
        of = f" (of {sizes[name]:,} bytes)" if sizes.get(name, 0) > len(text) else ""
        if text.strip():
            printed.append(OutputBlock(title=f"{outcome.id} {name}{of}", text=text, room=room))
    facts = Pairs(rows=tuple(_run_facts(outcome)), formats=TERMINAL + HTML)
    return Folded(summary=summary, blocks=(facts, *printed), id=outcome.id)


def _run_facts(outcome: Outcome) -> Iterator[tuple[str, Words]]:
    effect = took_effect(outcome)
    why = f": {outcome.took_effect_why}" if outcome.took_effect_why else ""
    rows: tuple[tuple[str, Words], ...] = (
        ("For", outcome.request.purpose),
        ("Environment", code_words(env_text(outcome.request.env))),
        ("Took effect", f"{effect}{why}" if effect and outcome.request.env else ""),
        ("Command", code_words(" ".join(outcome.argv))),
        ("Process", "forked from a warm worker" if outcome.forked else "a fresh interpreter"),
        ("Stages", ", ".join(f"{name} {took_text(took)}" for name, took in outcome.stages.items())),
        ("Memory", f"{outcome.peak_rss / 2**20:,.0f} MiB at most" if outcome.peak_rss else ""),
        ("Warnings", "; ".join(outcome.warnings)),
        ("No debugger", outcome.debugger_problem or ""),
    )
    yield from (row for row in rows if row[1])


# Many samples.
CLUSTER_HEADINGS = ("", "Samples", "Verdict", "Cause", "Subject", "Observed", "How sure", "First")
OUTPUT_HEADINGS = ("Output", "Samples", "Values", "Different", "NaN", "Inf", "Min", "Max", "Wrong", "max diff", "Worst")
SAMPLE_HEADINGS = ("", "Sample", "Verdict", "Cause", "Subject", "Observed", "Time", "Run")
_SAMPLE_TONES = {"healthy": "", "problem": "bad", "unknown": "unsure"}
_SAMPLE_MARKS = {"healthy": "", "problem": "x", "unknown": "!"}


def samples_text(found: Samples) -> str:
    """How many of the samples are healthy, and which one the report is about."""
    missing = found.given - len(found.rows)
    state = f"{found.bad} of {plural(found.given, 'sample')} not healthy" if found.bad else ""
    state = state or f"{'all ' if not missing else ''}{plural(len(found.rows), 'sample')} healthy"
    uncalled = f", {missing} not judged" if missing else ""
    return f"{state}{uncalled}; examined in full: {one_line(found.examined)}"


def sample_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """Samples that fail alike, each output over all samples, and with ``detail`` every sample."""
    found = report.samples
    if found is None:
        return ()
    clusters = [
        _sample_line(one.verdict, one.count, one.cause, one.subject, one.observed, one.status, one.names[0])
        for one in found.clusters
    ]
    outputs = [_output_cells(one) for one in found.outputs]
    rows = [
        _sample_line(one.verdict, one.name, one.cause, one.subject, one.observed, took_text(one.seconds), one.run)
        for one in found.rows
        if detail > 1 or one.verdict != "healthy"
    ]
    tables = (
        _sample_table("Failures alike", CLUSTER_HEADINGS, clusters),
        _sample_table("Outputs over all samples", OUTPUT_HEADINGS, text_lines(outputs)),
        _sample_table("Samples", SAMPLE_HEADINGS, rows if detail > 0 else ()),
    )
    notes = (NoteBlock(words=one_line(note), tone="dim") for note in found.notes)
    return (NoteBlock(words=samples_text(found)), *(table for table in tables if table.rows), *notes)


def _sample_table(label: str, headings: tuple[str, ...], rows: Sequence[TableLine]) -> TableBlock:
    marked = not headings[0]
    whole = [heading for heading in headings if heading not in ("Observed", "First", "Worst", "Sample")]
    named = headings[marked:]
    return TableBlock(
        label=label, headings=named, rows=tuple(rows), titled=True, marked=marked, sparse=True, whole=whole
    )


def _sample_line(verdict: str, first: object, *rest: object) -> TableLine:
    """A row that begins with ``first``; the verdict is shown behind it."""
    words = (str(first), verdict, *(one_line(str(one or "")) for one in rest))
    return TableLine(tuple(map(Cell, words)), _SAMPLE_TONES.get(verdict, ""), _SAMPLE_MARKS.get(verdict, ""))


def _output_cells(one: OutputStatistics) -> tuple[str, ...]:
    numbers = [f"{value:.4g}" if value is not None else "" for value in (one.low, one.high)]
    values = f"{'/'.join(one.dtypes)}{' '.join(one.shapes[:2])}{' …' if len(one.shapes) > 2 else ''}"
    counts = [str(count or "") for count in (one.nan, one.inf)]
    far = f"{one.max_abs:.3g}" if one.max_abs is not None else ""
    distinct = "" if one.distinct is None else str(one.distinct)
    return (
        *(one_line(one.path), str(one.samples), one_line(values), distinct, *counts, *numbers),
        *(str(one.differing or ""), far, one_line(one.worst or "")),
    )
