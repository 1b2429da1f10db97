"""All rules, in the order of their ids. One file per family, two where one would be long; each has ``RULES``."""

from __future__ import annotations

from importlib import import_module

from aotidoctor.triton.serving import Family, ServingRule

_FILES = "config files scheduling instances parameters hook package spec listing tensors batching rest"
_FAMILIES: list[Family] = [import_module(f"{__name__}.{name}").RULES for name in _FILES.split()]
RULES: tuple[ServingRule, ...] = tuple(
    sorted((rule for family in _FAMILIES for rule in family), key=lambda rule: int(rule.id[1:]))
)
