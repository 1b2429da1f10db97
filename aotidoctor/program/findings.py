"""Violations as findings."""

from __future__ import annotations

from aotidoctor.model.evidence import Evidence, FileSource, Severity
from aotidoctor.model.exported import Violation
from aotidoctor.program.rules import BY_CODE


def evidence(found: Violation, path: str, *, accepted: bool = False) -> Evidence:
    """The finding, as severe as its rule says. Raises ``KeyError`` for a rule or a kind that does not exist.

    ``accepted``: the installed verifier passes the program, so a rule of its own is no error here.
    """
    rule = BY_CODE[found.code]
    severity = rule.severities[found.kind]
    name = (found.target or found.node if rule.names_target else found.node or found.target) or path
    subject = f"{found.graph}.{name}" if found.graph else name
    overruled = accepted and rule.of_torch and severity is Severity.ERROR
    facts = {
        "what": "program",
        "rule": rule.name,
        "node": found.node,
        "target": found.target,
        "graph": found.graph or None,
    }
    if found.where is not None:
        facts["line"] = found.where.text or None
    return Evidence(
        code=found.code,
        kind=found.kind,
        severity=Severity.WARN if overruled else severity,
        subject=subject,
        observed=found.observed,
        expected=found.expected,
        message=_message(found, subject, rule.title, overruled=overruled),
        source=None if found.where is None else FileSource(file=found.where.file, line=found.where.line),
        facts={**{key: value for key, value in facts.items() if value is not None}, **found.facts},
    )


def _message(found: Violation, subject: str, title: str, *, overruled: bool) -> str:
    """Rule and place; ``observed`` and ``expected`` stand beside it."""
    calls = f" ({found.target})" if found.target is not None and found.target != subject else ""
    line = f", from `{found.where.text}`" if found.where is not None and found.where.text else ""
    doubt = "; the verifier of the installed torch accepts it" if overruled else ""
    return f"{title}: {subject}{calls}{line}{doubt}"
