"""How a batch ended: a few lines for people, and JSON of the schema ``aotidoctor.batch/1``."""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.model.fleet import FleetSummary
from aotidoctor.reports.json.artifact import picked
from aotidoctor.reports.json.render import dumps
from aotidoctor.reports.text import neutral

SCHEMA = "aotidoctor.batch/1"
# Causes that the text names; the JSON has them all.
SHOWN = 10


def render_json(summary: FleetSummary, status: int) -> str:
    """One strict JSON document that ends in a newline."""
    document: dict[str, object] = {
        "schema": SCHEMA,
        **picked(summary, "folder command items kept cached judged as_expected"),
        "duration_s": round(summary.seconds, 3),
        **picked(summary, "verdicts causes statuses interrupted problem notes"),
        "exit_status": status,
    }
    return dumps(document)


def render_text(summary: FleetSummary) -> str:
    """Lines for a terminal or a log."""
    return "\n".join(neutral(line) for line in _lines(summary)) + "\n"


def render_markdown(summary: FleetSummary) -> str:
    """The same as a list and a table."""
    lines = [f"**{_counted(summary)}**", "", f"Results: `{_code(summary.folder)}`", ""]
    if summary.problem is not None:
        lines += [f"Not complete: {neutral(summary.problem)}", ""]
    if summary.causes:
        lines += ["| cause | items |", "|---|---:|"]
        lines += [f"| `{_code(cause)}` | {count:,} |" for cause, count in summary.causes.items()]
    return "\n".join(lines).rstrip() + "\n"


def _code(text: str) -> str:
    return neutral(text).replace("`", "'").replace("|", "¦").replace("\n", " ")


def _counted(summary: FleetSummary) -> str:
    done = summary.kept + summary.cached + summary.judged
    parts = ", ".join(f"{count:,} {name}" for name, count in summary.verdicts.items())
    whole = f"{done:,} of {summary.items:,}" if done < summary.items else f"{done:,}"
    noun = "item" if summary.items == 1 else "items"
    return f"{whole} {noun}: {parts}" if parts else f"{whole} {noun}"


def _lines(summary: FleetSummary) -> Iterator[str]:
    yield _counted(summary)
    causes = list(summary.causes.items())
    for cause, count in causes[:SHOWN]:
        yield f"  {count:7,}  {cause}"
    if len(causes) > SHOWN:
        rest = sum(count for _, count in causes[SHOWN:])
        yield f"  {rest:7,}  {len(causes) - SHOWN} more causes"
    if summary.as_expected:
        yield f"{summary.as_expected:,} as expected"
    parts = f"{summary.judged:,} judged, {summary.cached:,} from the cache, {summary.kept:,} kept"
    yield f"{parts}, in {summary.seconds:.1f} s"
    yield from summary.notes
    if summary.problem is not None:
        yield f"not complete: {summary.problem}"
    yield f"results: {summary.folder}"
