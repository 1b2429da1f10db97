"""The runs of a report: how each ended, and what the telling ones printed."""

from __future__ import annotations

import re

from rich.text import Text

from aotidoctor.model.report import Report
from aotidoctor.model.run import Outcome
from aotidoctor.reports import run_view
from aotidoctor.reports.terminal.layout import STYLES, Layout
from aotidoctor.reports.text import head, one_line, seconds, tail

_NOISE = re.compile(
    r"^frame #\d+: |^<omitting python frames>|[/\\]aotidoctor[/\\]worker[/\\]|^Extension modules: |^\s*$"
)


def show_runs(report: Report, out: Layout, detail: int) -> None:
    """A table of the runs; then what failed printed, or with -v what each did."""
    if not report.runs:
        return
    out.title("Runs")
    rows = []
    for outcome in report.runs:
        effect = run_view.took_effect(outcome)
        if effect and outcome.took_effect_why:
            effect += f": {one_line(outcome.took_effect_why, 80)}"
        style = STYLES["error"] if run_view.outcome_failed(outcome) else ""
        name = one_line(outcome.request.probe, 40)
        ended = Text(run_view.run_ending(outcome), style=style)
        rows.append((outcome.id, name, ended, outcome.stage, seconds(outcome.seconds), effect))
    out.table(("", "Probe", "Ended", "In", "Time", "Setting took effect"), rows)
    failed = run_view.first_failed(report.runs)
    for outcome in report.runs if detail > 0 else [failed] if failed else []:
        _printed(outcome, out, detail)


def _printed(outcome: Outcome, out: Layout, detail: int) -> None:
    """What a child said: the start of its exception or the end of its output, or all that was kept."""
    parts = _last_words(outcome) if detail <= 0 else _all_words(outcome, (4000, 20000)[detail > 1])
    for name, content in parts:
        if content.strip():
            out.line(Text(f" {outcome.id} {name}", style="dim"))
            out.block(content)


def _last_words(outcome: Outcome) -> list[tuple[str, str]]:
    """The telling part: no frames of C++, of this program's own worker, no list of extension modules."""
    error = outcome.error
    printed = (outcome.stderr_tail if error is None else error.message).splitlines()
    kept = "\n".join(line for line in printed if not _NOISE.search(line))
    return [("stderr", tail(kept, 400))] if error is None else [("raised", head(kept, 6))]


def _all_words(outcome: Outcome, room: int) -> list[tuple[str, str]]:
    changes = run_view.env_text(outcome.request.env)
    error = outcome.error
    return [
        ("was for", outcome.request.purpose),
        ("command", f"{changes} {' '.join(outcome.argv)}".strip()),
        ("raised", tail(error.traceback or error.message, room) if error is not None else ""),
        ("stdout", tail(outcome.stdout_tail, room)),
        ("stderr", tail(outcome.stderr_tail, room)),
    ]
