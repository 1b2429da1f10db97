"""All rules, in the order of their ids. One file per family; each has ``RULES``."""

from __future__ import annotations

from aotidoctor.model.serving import Rule

_FAMILIES: tuple[tuple[Rule, ...], ...] = ()

RULES: tuple[Rule, ...] = tuple(
    sorted((rule for family in _FAMILIES for rule in family), key=lambda rule: int(rule.id[1:]))
)
