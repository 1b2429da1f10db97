"""A fleet as strict JSON, schema ``aotidoctor.clusters/1``: everything but the rows of the items."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.clusters import SUMMARY_SCHEMA, Cluster, Overview
from aotidoctor.reports.fleet import words
from aotidoctor.reports.json.artifact import picked, record
from aotidoctor.reports.json.render import dumps

_APART = ("argv", "version", "made", "clusters")


def render(summary: Overview) -> str:
    """``summary`` as one document that ends in a newline."""
    head = words.verdict(summary)
    rest = {name: value for name, value in record(summary).items() if name not in _APART}
    return dumps(
        {
            "schema": SUMMARY_SCHEMA,
            "tool": {"name": "aotidoctor", "version": summary.version, "argv": summary.argv},
            "made": summary.made,
            "verdict": head.word.lower().replace(" ", "-"),
            "text": head.text,
            "news": [cluster.key for cluster in summary.news],
            "not_examined": summary.not_examined,
            "clusters": [_cluster(cluster) for cluster in summary.clusters],
            **rest,
        }
    )


def render_cluster(summary: Overview, cluster: Cluster) -> str:
    """One cluster alone: what a command that is called for it reads."""
    return dumps(
        {
            "schema": SUMMARY_SCHEMA,
            "tool": {"name": "aotidoctor", "version": summary.version, "argv": summary.argv},
            **picked(summary, "made folders baseline"),
            "cluster": _cluster(cluster),
        }
    )


def _cluster(cluster: Cluster) -> Mapping[str, object]:
    return {**record(cluster), **picked(cluster, "is_accepted is_news")}
