"""Titles and remedies with the facts of the case: ``{subject}``, ``{observed|something}``.

Besides facts there are ``subject``, ``leaf`` (the subject without ``.shape[0]``), ``observed``, ``expected`` and
``said`` (what was found behind a failed check, else the message of a run, else what was observed). A name that the
leading evidence does not have is replaced by what stands behind ``|``, or by ``?``. Braces around anything but a name
are left alone, so commands may hold Python dictionaries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.evidence import Evidence, FactValue
from aotidoctor.model.operators import qualified

NAME = re.compile(r"\{([a-z_]+)(?:\|([^{}]*))?\}")
_PART = re.compile(r"\.(?:shape\[\d+\]|shape|stride|dtype|device)$")


def informed(lead: Evidence, evidence: Sequence[Evidence]) -> Evidence:
    """``lead`` with the facts that quieter evidence adds to its own."""
    notes = [item.facts for item in evidence if item.severity.rank < lead.severity.rank]
    added = {key: value for facts in notes for key, value in facts.items() if lead.facts.get(key) is None}
    return replace(lead, facts={**lead.facts, **added}) if added else lead


def fill(template: str, lead: Evidence) -> str:
    """The template with the facts of ``lead``."""

    def value(found: re.Match[str]) -> str:
        return _text(_fact(lead, found.group(1))) or found.group(2) or "?"

    return NAME.sub(value, template)


def title_of(template: str, lead: Evidence, evidence: Sequence[Evidence]) -> str:
    """The title, with a count of other subjects that have the same trouble."""
    others = {item.subject for item in evidence if item.code == lead.code and item.kind == lead.kind} - {lead.subject}
    title = fill(template, lead)
    return f"{title} (and {len(others)} more)" if others else title


def subject_of(lead: Evidence) -> str | None:
    """What the evidence is about; an operator always as ``ops::scale``."""
    subject = lead.subject
    return qualified(subject) if subject is not None and subject.startswith("torch.ops.") else subject


def leaf_of(subject: str | None) -> str | None:
    """``args[0]`` of ``args[0].shape[1]``; None where there is no subject."""
    return None if subject is None else _PART.sub("", subject)


def _fact(lead: Evidence, name: str) -> FactValue:
    match name:
        case "subject":
            return subject_of(lead)
        case "leaf":
            path = lead.facts.get("path")
            return path if isinstance(path, str) else leaf_of(lead.subject)
        case "observed":
            return lead.observed
        case "said":
            return lead.facts.get("found") or lead.facts.get("line") or lead.observed
        case "expected":
            return lead.expected
        case _:
            return lead.facts.get(name)


def _text(value: FactValue) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple) and any(isinstance(item, str) for item in value):
        return ", ".join(map(str, value))
    if isinstance(value, tuple):
        inner = ", ".join("?" if item is None else str(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value)
