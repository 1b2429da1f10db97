"""A fleet as SARIF 2.1.0: one result per cluster, with its state against the baseline and what accepts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from aotidoctor.model.clusters import CHANGED, KNOWN, NEW, Cluster, Example, Gone, Overview
from aotidoctor.reports import view
from aotidoctor.reports.fleet import words
from aotidoctor.reports.sarif import RESULTS, Manual, document, tool
from aotidoctor.reports.sarif_places import Node
from aotidoctor.reports.text import one_line

_STATES = {NEW: "new", KNOWN: "unchanged", CHANGED: "updated"}
_HELP = 8000


def render(summary: Overview, manual: Manual = lambda _: None) -> str:
    """``summary`` as a SARIF log; ``manual`` gives name and text of the page of a cause."""
    clusters = summary.clusters[:RESULTS]
    gone = summary.gone[: RESULTS - len(clusters)]
    causes = list(dict.fromkeys([*map(words.cause, clusters), *map(words.cause, gone)]))
    rules = {name: number for number, name in enumerate(causes)}
    notes = [_notice("note", note) for note in words.notes(summary)]
    notes += [_notice("warning", f"{one.count} items {one.ending}: {one.problem}") for one in summary.unexamined]
    run: Node = {
        "tool": tool(summary.version, [_rule(name, manual(name)) for name in causes]),
        "invocations": [
            {
                "executionSuccessful": True,
                "commandLine": view.command_text(summary.argv),
                "endTimeUtc": summary.made,
                "toolExecutionNotifications": notes,
            }
        ],
        "automationDetails": {"id": "aotidoctor/fleet/"},
        "results": [*(_result(item, rules) for item in clusters), *(_absent(item, rules) for item in gone)],
        "columnKind": "unicodeCodePoints",
    }
    return document(run)


def _rule(name: str, page: tuple[str, str] | None) -> Node:
    title, text = page if page is not None else (name, "")
    short = one_line(title or name, 200)
    return {
        "id": name,
        "name": short,
        "shortDescription": {"text": short},
        "fullDescription": {"text": short},
        "help": {"text": text[:_HELP] or short, "markdown": text[:_HELP] or short},
        "properties": {"tags": ["aotinductor", "cause"]},
    }


def _result(cluster: Cluster, rules: Mapping[str, int]) -> Node:
    lines = [f"{words.cause(cluster)}: {words.title(cluster)}", words.plural_of(cluster.count, "item")]
    lines += [f"{label}: {text}" for label, text in words.details(cluster)]
    node: Node = {
        "ruleId": words.cause(cluster),
        "ruleIndex": rules[words.cause(cluster)],
        "level": "error" if cluster.is_news or not cluster.change else "warning",
        "message": {"text": "\n".join(lines)},
        "locations": [_location(one) for one in cluster.examples[:1]],
        "relatedLocations": [_related(number, one) for number, one in enumerate(cluster.examples[1:], 1)],
        "occurrenceCount": max(1, cluster.count),
        "partialFingerprints": {"aotidoctorSignature/v1": cluster.key},
        "suppressions": _suppressions(cluster),
        "properties": {"items": cluster.count, "hosts": cluster.hosts, "regressed": cluster.regressed},
    }
    return node | ({"baselineState": _STATES[cluster.change]} if cluster.change else {})


def _suppressions(cluster: Cluster) -> Sequence[Node]:
    if cluster.accepted is None or not cluster.is_accepted:
        return []
    told = one_line(f"{cluster.accepted.reason} (until {cluster.accepted.until})", 400)
    return [{"kind": "external", "status": "accepted", "justification": told}]


def _absent(item: Gone, rules: Mapping[str, int]) -> Node:
    return {
        "ruleId": words.cause(item),
        "ruleIndex": rules[words.cause(item)],
        "level": "note",
        "message": {"text": one_line(item.title or words.cause(item), 400)},
        "partialFingerprints": {"aotidoctorSignature/v1": item.key},
        "baselineState": "absent",
        "properties": {"items": 0, "before": item.before},
    }


def _location(example: Example) -> Node:
    name = one_line(example.name, 1000)
    return {
        "physicalLocation": {"artifactLocation": {"uri": quote(name, safe="/")}},
        "logicalLocations": [{"fullyQualifiedName": f"{name} on {one_line(example.host, 200)}"}],
    }


def _related(number: int, example: Example) -> Node:
    return {"id": number, "message": {"text": one_line(example.name, 300)}, **_location(example)}


def _notice(level: str, text: str) -> Node:
    return {"level": level, "message": {"text": one_line(text, 1000)}, "descriptor": {"id": "fleet"}}
