"""Probes against outcomes, and every child run with what it printed."""

from __future__ import annotations

from collections.abc import Collection

from markupsafe import Markup

from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.model.run import Outcome
from aotidoctor.reports import probe_rows, run_view
from aotidoctor.reports.html import text as html_text
from aotidoctor.reports.html.blocks import Block, Cell, Folded, Line, Note, Pairs, Table, cell, printed, texts
from aotidoctor.reports.place_view import took_text
from aotidoctor.reports.text import one_line, seconds

_RUNS = 200
_ENDINGS = 12
# Characters of what runs printed: of each run, and of all together.
_ROOM = 8000
_ROOM_OF_ALL = 240_000
_STREAMS = 5


def matrix_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """One row per probe, one column per way to end, the runs in the cells; and the pattern where there is one."""
    if not report.runs:
        return ()
    endings = list(dict.fromkeys(run_view.run_ending(outcome) for outcome in report.runs))[:_ENDINGS]
    probes = list(dict.fromkeys(outcome.request.probe for outcome in report.runs))
    lines = []
    for probe in probes:
        runs = [outcome for outcome in report.runs if outcome.request.probe == probe]
        lines.append(Line(cells=(_probe(runs), *(_ended(runs, ending) for ending in endings), _acted(runs))))
    table = Table(
        label="Probes and how they ended",
        headings=("Probe", *endings, "Setting acted"),
        rows=tuple(lines[:_RUNS]),
        look="matrix",
    )
    return (table, *_pattern(report, known))


def _probe(runs: list[Outcome]) -> Cell:
    purpose = runs[0].request.purpose if len({outcome.request.purpose for outcome in runs}) == 1 else ""
    name = html_text.code(runs[0].request.probe, 60)
    return cell(Markup("{} {}").format(name, html_text.dim(purpose, 120)), heads=True)


def _ended(runs: list[Outcome], ending: str) -> Cell:
    """The runs that ended so; a crash or an exception is red, an end as it should be is green."""
    here = [outcome for outcome in runs if run_view.run_ending(outcome) == ending]
    if not here:
        return cell("")
    tone = "bad" if any(run_view.outcome_failed(outcome) for outcome in here) else "good"
    places = dict.fromkeys(outcome.stage for outcome in here if run_view.outcome_failed(outcome))
    body = Markup("{} {}").format(
        html_text.links(outcome.id for outcome in here[:20]), html_text.dim(", ".join(places))
    )
    return cell(body, tone=tone, look="outcome")


def _acted(runs: list[Outcome]) -> Cell:
    words = dict.fromkeys(run_view.took_effect(outcome) for outcome in runs if outcome.request.env)
    return cell(", ".join(word for word in words if word), tone="dim" if set(words) <= {"yes", ""} else "unsure")


def _pattern(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    rows = probe_rows.probe_rows(report)
    if not rows:
        return ()
    said = Note(body=html_text.linked(probe_rows.verdict(report), known))
    return said, Table(label=probe_rows.TITLE, headings=probe_rows.HEADINGS, rows=texts(rows))


def run_blocks(report: Report, known: Collection[str]) -> tuple[Block, ...]:
    """Each run folded, in order."""
    runs = report.runs[:_RUNS]
    room = max(300, min(_ROOM, _ROOM_OF_ALL // (_STREAMS * max(len(runs), 1))))
    first = run_view.first_failed(runs)
    folded = tuple(_run(outcome, known, _ROOM if outcome is first else room) for outcome in runs)
    more = len(report.runs) - len(runs)
    return (*folded, *((Note(body=html_text.line(f"and {plural(more, 'more run')}"), tone="dim"),) if more else ()))


def _run(outcome: Outcome, known: Collection[str], room: int) -> Folded:
    failed = run_view.outcome_failed(outcome)
    summary = Markup('<b>{}</b> {} <span class="end {}">{}</span> <span class="dim">{}</span>').format(
        html_text.line(outcome.id),
        html_text.code(outcome.request.probe, 60),
        "bad" if failed else "good",
        html_text.line(run_view.run_ending(outcome)),
        html_text.line(", ".join((*((f"in {outcome.stage}",) if failed else ()), seconds(outcome.seconds)))),
    )
    blocks = (Pairs(rows=_facts(outcome, known)), *_told(outcome, room))
    return Folded(summary=summary, blocks=blocks, id=html_text.anchor(outcome.id))


def _facts(outcome: Outcome, known: Collection[str]) -> tuple[tuple[str, Markup], ...]:
    effect = run_view.took_effect(outcome)
    why = f": {outcome.took_effect_why}" if outcome.took_effect_why else ""
    stages = ", ".join(f"{name} {took_text(took)}" for name, took in outcome.stages.items())
    memory = f"{outcome.peak_rss / 2**20:,.0f} MiB at most" if outcome.peak_rss else ""
    rows = (
        ("For", html_text.linked(outcome.request.purpose, known)),
        ("Environment", html_text.code(run_view.env_text(outcome.request.env), 2000)),
        ("Setting acted", html_text.line(f"{effect}{why}" if effect and outcome.request.env else "")),
        ("Command", html_text.code(" ".join(outcome.argv), 2000)),
        ("Process", html_text.line("forked from a warm worker" if outcome.forked else "a fresh interpreter")),
        ("Stages", html_text.line(stages, 1000)),
        ("Memory", html_text.line(memory)),
        ("Warnings", html_text.line("; ".join(outcome.warnings), 1000)),
        ("No debugger", html_text.line(outcome.debugger_problem or "")),
    )
    return tuple(row for row in rows if row[1])


def _told(outcome: Outcome, room: int) -> tuple[Block, ...]:
    """What it said, stream by stream, the end of each."""
    error = outcome.error
    streams = (
        ("raised", (error.traceback or f"{error.type}: {error.message}") if error is not None else ""),
        ("stdout", outcome.stdout_tail),
        ("stderr", outcome.stderr_tail),
        ("debugger", outcome.debugger_output),
        ("tool", outcome.tool_output),
    )
    sizes = {"stdout": outcome.stdout_bytes, "stderr": outcome.stderr_bytes}
    blocks: list[Block] = []
    for name, text in streams:
        of = f" (of {sizes[name]:,} bytes)" if sizes.get(name, 0) > len(text) else ""
        blocks += printed(one_line(f"{name}{of}"), text, room)
    return tuple(blocks)
