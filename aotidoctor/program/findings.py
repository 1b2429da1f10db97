"""The child's records as violations, and violations as findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aotidoctor.model.evidence import Evidence, FactValue, FileSource, Severity, read_fact
from aotidoctor.model.exported import Violation, Where
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.program.rules import BY_CODE


def violation(
    code: str,
    kind: str,
    *,
    observed: str,
    expected: str,
    node: str | None = None,
    target: str | None = None,
    graph: str = "",
    where: Where | None = None,
    facts: Mapping[str, FactValue] | None = None,
) -> Violation:
    """A violation as severe as its rule says; ``code`` is ``VERIFY-G03``."""
    return Violation(
        code=code,
        kind=kind,
        severity=BY_CODE[code].severities[kind],
        observed=observed,
        expected=expected,
        node=node,
        target=target,
        graph=graph,
        where=where,
        facts=facts or {},
    )


def read_records(value: JsonValue) -> Iterator[Violation]:
    """What the child's ``records`` hold; a record of an unknown rule is an error of ours, and raises ``KeyError``."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield _violation(item)


def _violation(item: JsonObject) -> Violation:
    facts = item.get("facts")
    return violation(
        str(item["code"]),
        str(item["kind"]),
        observed=str(item["observed"]),
        expected=str(item["expected"]),
        node=_text(item.get("node")),
        target=_text(item.get("target")),
        graph=str(item.get("graph") or ""),
        where=_where(item.get("where")),
        facts={name: read_fact(fact) for name, fact in facts.items()} if isinstance(facts, dict) else {},
    )


def _text(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _where(value: JsonValue) -> Where | None:
    if not isinstance(value, dict) or not isinstance(line := value.get("line"), int):
        return None
    return Where(file=str(value.get("file")), line=line, text=str(value.get("text") or ""))


def evidence(found: Violation, path: str, *, accepted: bool = False) -> Evidence:
    """The finding. ``accepted``: the installed verifier passes the program, so a rule of its own is no error here."""
    rule = BY_CODE[found.code]
    by_node, by_target = (found.node, found.target)[:: -1 if rule.names_target else 1]
    name = by_node or by_target or path
    subject = f"{found.graph}.{name}" if found.graph else name
    overruled = accepted and rule.of_torch and found.severity is Severity.ERROR
    facts = {
        "what": "program",
        "rule": rule.name,
        "node": found.node,
        "target": found.target,
        "graph": found.graph or None,
    }
    line = {"line": found.where.text} if found.where is not None and found.where.text else {}
    return Evidence(
        code=found.code,
        kind=found.kind,
        severity=Severity.WARN if overruled else found.severity,
        subject=subject,
        observed=found.observed,
        expected=found.expected,
        message=_message(found, subject, rule.title, overruled=overruled),
        source=None if found.where is None else FileSource(file=found.where.file, line=found.where.line),
        facts={**{key: value for key, value in facts.items() if value is not None}, **line, **found.facts},
    )


def _message(found: Violation, subject: str, title: str, *, overruled: bool) -> str:
    """Rule and place; ``observed`` and ``expected`` stand beside it."""
    calls = f" ({found.target})" if found.target is not None and found.target != subject else ""
    line = f", from `{found.where.text}`" if found.where is not None and found.where.text else ""
    doubt = "; the verifier of the installed torch accepts it" if overruled else ""
    return f"{title}: {subject}{calls}{line}{doubt}"
