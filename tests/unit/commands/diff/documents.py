"""Documents to compare: reports made by hand, as the JSON that a reader gets."""

from __future__ import annotations

import json

from aotidoctor.commands.diff.compare_documents import ComparedSource, compare_sources
from aotidoctor.commands.diff.document_values import DocumentNode
from aotidoctor.reports.json import json_report as json_


def document(report):
    return json.loads(json_.render_json(report))


def source(value, name="report.json", kind="report", parts=("host", "package", "inputs", "outcome"), **more):
    document_ = value if isinstance(value, dict) else document(value)
    return ComparedSource(name=name, kind=kind, node=DocumentNode(value=document_, file=name), parts=parts, **more)


def compared(a, b):
    return compare_sources(
        a if isinstance(a, ComparedSource) else source(a, "a.json"),
        b if isinstance(b, ComparedSource) else source(b, "b.json"),
    )


def told(found):
    return {f"{item.area}: {item.subject}": (item.a, item.b) for item in found.differences}


def rule_of(found, subject):
    (item,) = [one for one in found.differences if one.subject == subject]
    return item.level, item.playbook
