"""Write the summary of a fleet as an HTML page, SARIF or JUnit XML, and the end of a batch as text or JSON.

The page needs nothing else: no server, no network, no font. All of it can be read without the script, which sorts
tables, filters the items, and is allowed by its hash alone. SARIF has one result per cluster, with its state against
the baseline and what accepts it. JUnit has one case per item: an item fails where its cluster is neither accepted nor
known since the baseline; those are skipped, with the reason; what was not examined is an error. The end of a batch has
schema ``aotidoctor.batch/1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from urllib.parse import quote

from markupsafe import Markup

from aotidoctor.model.fleet import FleetSummary
from aotidoctor.model.fleet_summary import CHANGED, HERE, KNOWN, NEW, Cluster, Example, ItemRow, Overview, Timeline
from aotidoctor.reports.fleet import fleet_text
from aotidoctor.reports.html.html_blocks import clean, template_environment, verdict_icon, with_script_hash
from aotidoctor.reports.json.json_report import dump_json, pick_fields
from aotidoctor.reports.junit import JUnitCase, junit_document
from aotidoctor.reports.page import report_view
from aotidoctor.reports.sarif import (
    HELP,
    RESULTS,
    RuleManual,
    SarifNode,
    sarif_document,
    sarif_notice,
    sarif_rule,
    sarif_tool,
)
from aotidoctor.reports.text import COLORS, neutral, one_line

# Causes over time as stacked bars in SVG, without matplotlib.
WIDTH, HEIGHT = 960, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 8, 10, 30
_TICKS = 4


_BAR = Markup('<rect class="c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}: {} {}</title></rect>')
_TICK = Markup('<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/><text x="{}" y="{:.1f}" text-anchor="end">{}</text>')


def causes_over_time(line: Timeline) -> Markup:
    """One bar per period, one colour per cause; nothing where there is only one period."""
    totals = [sum(counts[at] for _, counts in line.series) for at in range(len(line.starts))]
    if len(line.starts) < 2 or not any(totals):
        return Markup("")
    # A number of which `_TICKS` parts are whole, not below `most`.
    most = max(totals)
    part = 1
    while part * _TICKS < most:
        part = part * 2 if str(part)[0] in "15" else part * 5 // 2
    top = part * _TICKS
    step = (WIDTH - _LEFT - _RIGHT) / len(line.starts)
    scale = (HEIGHT - _TOP - _BOTTOM) / top
    parts = [*_axis(top, scale), *_labels(line, step)]
    for at, start in enumerate(line.starts):
        base, left = float(HEIGHT - _BOTTOM), _LEFT + at * step + step * 0.1
        for number, (name, counts) in enumerate(line.series):
            if counts[at]:
                tall = counts[at] * scale
                base -= tall
                parts.append(_BAR.format(number, left, base, step * 0.8, tall, start, clean(name), counts[at]))
    return Markup('<svg viewBox="0 0 {} {}" aria-hidden="true">{}</svg>').format(WIDTH, HEIGHT, Markup("").join(parts))


def _axis(top: int, scale: float) -> list[Markup]:
    parts = []
    for tick in range(_TICKS + 1):
        value = top * tick // _TICKS
        y = HEIGHT - _BOTTOM - value * scale
        parts.append(_TICK.format(_LEFT, WIDTH - _RIGHT, y, y, _LEFT - 6, y + 4, value))
    return parts


def _labels(line: Timeline, step: float) -> list[Markup]:
    """The first, the last and a few periods between."""
    every = max(1, -(-len(line.starts) // 8))
    return [
        Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            _LEFT + (at + 0.5) * step, HEIGHT - 10, clean(start[-11:] if line.unit == "hour" else start)
        )
        for at, start in enumerate(line.starts)
        if at % every == 0
    ]


# HTML.
ROWS = 10_000
"""Items of a page; those that fail come first."""
_BYTES = 6 << 20
_CELL = 240
_DETAILED = 300


def render_fleet_page(summary: Overview, rows: Iterable[ItemRow]) -> str:
    """``summary`` with its items ``rows`` as a page."""
    head = fleet_text.fleet_verdict(summary)
    # The first rows that fit on a page.
    listed, size = [], 0
    for row in islice(rows, ROWS):
        size += 300 + sum(min(len(cell), _CELL) for cell in (row.name, row.subject, row.problem, row.labels, row.host))
        if size > _BYTES:
            break
        listed.append(row)
    template = template_environment().get_template("fleet.html.jinja")
    page = template.render(
        head=head,
        summary=summary,
        against=fleet_text.baseline_text(summary),
        notes=fleet_text.fleet_notes(summary),
        clusters=[
            {
                "number": number,
                "cells": fleet_text.cluster_rows(cluster, number),
                "tone": "bad" if cluster.is_news or not cluster.change else "unsure",
                "count": cluster.count,
                "cause": fleet_text.cluster_cause(cluster),
                "title": fleet_text.cluster_title(cluster),
                "details": fleet_text.cluster_details(cluster) if number <= _DETAILED else [],
                "examples": [fleet_text.example_text(one, _CELL) for one in cluster.examples],
            }
            for number, cluster in enumerate(summary.clusters, 1)
        ],
        rows=[_item_cells(row) for row in listed],
        left=summary.items - len(listed),
        states=sorted({row.state for row in listed}),
        causes=sorted({row.cause for row in listed if row.cause}),
        hosts=sorted({row.host for row in listed})[:500],
        here=HERE,
        words=fleet_text,
        drawing=causes_over_time(summary.timeline),
        periods=list(enumerate(summary.timeline.starts)),
        matrix=list(zip(summary.matrix.hosts, summary.matrix.counts, summary.matrix.totals, strict=True)),
        most=max((count for counts in summary.matrix.counts for count in counts), default=1) or 1,
        command=report_view.command_text(summary.argv),
        **with_script_hash("fleet.js"),
        icon=verdict_icon(COLORS[head.tone]),
    )
    return page + "\n"


def _item_cells(row: ItemRow) -> tuple[str, ...]:
    about = row.subject or row.title or row.problem
    return (
        one_line(row.name, _CELL),
        one_line(row.host, _CELL),
        row.state,
        row.cause,
        str(row.cluster or ""),
        one_line(about, _CELL),
        f"{row.seconds:.2f}",
        one_line(row.seen)[:16].replace("T", " "),
        one_line(row.labels, _CELL),
    )


# SARIF.
_STATES = {NEW: "new", KNOWN: "unchanged", CHANGED: "updated"}


def render_fleet_sarif(summary: Overview, manual: RuleManual = lambda _: None) -> str:
    """``summary`` as a SARIF log; ``manual`` gives name and text of the page of a cause."""
    clusters = summary.clusters[:RESULTS]
    gone = summary.gone[: RESULTS - len(clusters)]
    causes = list(dict.fromkeys([*map(fleet_text.cluster_cause, clusters), *map(fleet_text.cluster_cause, gone)]))
    rules = {name: number for number, name in enumerate(causes)}
    notes = [sarif_notice("note", note, "fleet") for note in fleet_text.fleet_notes(summary)]
    notes += [
        sarif_notice("warning", f"{one.count} items {one.ending}: {one.problem}", "fleet") for one in summary.unexamined
    ]
    run: SarifNode = {
        "tool": sarif_tool(summary.version, [_rule(name, manual(name)) for name in causes]),
        "invocations": [
            {
                "executionSuccessful": True,
                "commandLine": report_view.command_text(summary.argv),
                "endTimeUtc": summary.made,
                "toolExecutionNotifications": notes,
            }
        ],
        "automationDetails": {"id": "aotidoctor/fleet/"},
        "results": [
            *(_result(item, rules) for item in clusters),
            *(
                {
                    "ruleId": fleet_text.cluster_cause(item),
                    "ruleIndex": rules[fleet_text.cluster_cause(item)],
                    "level": "note",
                    "message": {"text": one_line(item.title or fleet_text.cluster_cause(item), 400)},
                    "partialFingerprints": {"aotidoctorSignature/v1": item.key},
                    "baselineState": "absent",
                    "properties": {"items": 0, "before": item.before},
                }
                for item in gone
            ),
        ],
        "columnKind": "unicodeCodePoints",
    }
    return sarif_document(run)


def _rule(name: str, page: tuple[str, str] | None) -> SarifNode:
    title, text = page if page is not None else (name, "")
    short = one_line(title or name)
    return sarif_rule(name, short, short, text[:HELP] or short)


def _result(cluster: Cluster, rules: Mapping[str, int]) -> SarifNode:
    lines = [
        f"{fleet_text.cluster_cause(cluster)}: {fleet_text.cluster_title(cluster)}",
        fleet_text.plural_of(cluster.count, "item"),
    ]
    lines += [f"{label}: {text}" for label, text in fleet_text.cluster_details(cluster)]
    if cluster.accepted is None or not cluster.is_accepted:
        suppressions = []
    else:
        words = one_line(f"{cluster.accepted.reason} (until {cluster.accepted.until})", 400)
        suppressions = [{"kind": "external", "status": "accepted", "justification": words}]
    node: SarifNode = {
        "ruleId": fleet_text.cluster_cause(cluster),
        "ruleIndex": rules[fleet_text.cluster_cause(cluster)],
        "level": "error" if cluster.is_news or not cluster.change else "warning",
        "message": {"text": "\n".join(lines)},
        "locations": [_location(one) for one in cluster.examples[:1]],
        "relatedLocations": [
            {"id": number, "message": {"text": one_line(one.name, 300)}, **_location(one)}
            for number, one in enumerate(cluster.examples[1:], 1)
        ],
        "occurrenceCount": max(1, cluster.count),
        "partialFingerprints": {"aotidoctorSignature/v1": cluster.key},
        "suppressions": suppressions,
        "properties": {"items": cluster.count, "hosts": cluster.hosts, "regressed": cluster.regressed},
    }
    return node | ({"baselineState": _STATES[cluster.change]} if cluster.change else {})


def _location(example: Example) -> SarifNode:
    name = one_line(example.name, 1000)
    return {
        "physicalLocation": {"artifactLocation": {"uri": quote(name, safe="/")}},
        "logicalLocations": [{"fullyQualifiedName": f"{name} on {one_line(example.host)}"}],
    }


# JUnit XML.
MOST = 20_000
"""Cases of a document. Those that fail come first."""
_MESSAGE = 400


def render_fleet_junit(summary: Overview, rows: Iterable[ItemRow]) -> str:
    """``summary`` with its items ``rows`` as XML."""
    cases: list[JUnitCase] = []
    left = 0
    for row in rows:
        if len(cases) < MOST:
            cases.append(_case(row, summary))
        else:
            left += 1
    head = fleet_text.fleet_verdict(summary)
    properties = {
        "tool": f"aotidoctor {summary.version}",
        "command": report_view.command_text(summary.argv),
        "verdict": f"{head.word}: {head.text}",
        **({"left_out": f"{left} healthy or known items"} if left else {}),
    }
    seconds = sum(case.seconds for case in cases)
    return junit_document("aotidoctor fleet", cases, seconds=seconds, at=summary.made, properties=properties)


def _case(row: ItemRow, summary: Overview) -> JUnitCase:
    family = f"aotidoctor.{row.command}.{row.host}"
    match row.state:
        case "healthy":
            return JUnitCase(name=row.name, family=family, seconds=row.seconds)
        case "unexamined":
            message = one_line(row.problem or "not examined", _MESSAGE)
            return JUnitCase(
                name=row.name, family=family, outcome="error", kind="not-examined", message=message, seconds=row.seconds
            )
    cluster = summary.clusters[row.cluster - 1] if row.cluster else None
    # Why it is no news; empty where it is.
    known = ""
    if cluster is not None and cluster.is_accepted and cluster.accepted is not None:
        known = f"accepted until {cluster.accepted.until} ({cluster.accepted.reason})"
    elif cluster is not None and summary.baseline and cluster.change != NEW and not cluster.regressed:
        known = "known since the baseline"
    text = one_line(f"{row.cause}: {row.title or row.subject or row.stage}", _MESSAGE)
    return JUnitCase(
        name=row.name,
        family=family,
        outcome="skipped" if known else "failure",
        kind=row.cause,
        message=f"{known}: {text}" if known else text,
        text="\n".join(part for part in (row.subject, row.signature, row.report) if part),
        seconds=row.seconds,
    )


# How a batch ended.
BATCH_SCHEMA = "aotidoctor.batch/1"
# Causes that the text names; the JSON has them all.
CAUSES_LISTED = 10


def render_batch_json(summary: FleetSummary, status: int) -> str:
    """One strict JSON document that ends in a newline."""
    document: dict[str, object] = {
        "schema": BATCH_SCHEMA,
        **pick_fields(summary, "folder command items kept cached judged as_expected"),
        "duration_s": round(summary.seconds, 3),
        **pick_fields(summary, "verdicts causes statuses interrupted problem notes"),
        "exit_status": status,
    }
    return dump_json(document)


def render_batch_text(summary: FleetSummary) -> str:
    """Lines for a terminal or a log."""
    return "\n".join(neutral(line) for line in _lines(summary)) + "\n"


def render_batch_markdown(summary: FleetSummary) -> str:
    """The same as a list and a table."""
    lines = [f"**{_describe_counts(summary)}**", "", f"Results: `{_code(summary.folder)}`", ""]
    if summary.problem is not None:
        lines += [f"Not complete: {neutral(summary.problem)}", ""]
    if summary.causes:
        lines += ["| cause | items |", "|---|---:|"]
        lines += [f"| `{_code(cause)}` | {count:,} |" for cause, count in summary.causes.items()]
    return "\n".join(lines).rstrip() + "\n"


def _code(text: str) -> str:
    return neutral(text).replace("`", "'").replace("|", "¦").replace("\n", " ")


def _describe_counts(summary: FleetSummary) -> str:
    done = summary.kept + summary.cached + summary.judged
    parts = ", ".join(f"{count:,} {name}" for name, count in summary.verdicts.items())
    whole = f"{done:,} of {summary.items:,}" if done < summary.items else f"{done:,}"
    noun = "item" if summary.items == 1 else "items"
    return f"{whole} {noun}: {parts}" if parts else f"{whole} {noun}"


def _lines(summary: FleetSummary) -> Iterator[str]:
    yield _describe_counts(summary)
    causes = list(summary.causes.items())
    for cause, count in causes[:CAUSES_LISTED]:
        yield f"  {count:7,}  {cause}"
    if len(causes) > CAUSES_LISTED:
        rest = sum(count for _, count in causes[CAUSES_LISTED:])
        yield f"  {rest:7,}  {len(causes) - CAUSES_LISTED} more causes"
    if summary.as_expected:
        yield f"{summary.as_expected:,} as expected"
    parts = f"{summary.judged:,} judged, {summary.cached:,} from the cache, {summary.kept:,} kept"
    yield f"{parts}, in {summary.seconds:.1f} s"
    yield from summary.notes
    if summary.problem is not None:
        yield f"not complete: {summary.problem}" if summary.interrupted else summary.problem
    yield f"results: {summary.folder}"
