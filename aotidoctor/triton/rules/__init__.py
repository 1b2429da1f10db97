"""All rules, in the order of their ids. One file per family, two where one would be long; each has ``RULES``."""

from __future__ import annotations

from aotidoctor.model.serving import Rule
from aotidoctor.triton.rules import (
    batching,
    config,
    dims,
    dtypes,
    files,
    hook,
    instance_kinds,
    instances,
    listing,
    names,
    ordinals,
    outputs,
    package,
    parameter_keys,
    parameters,
    platform,
    rest,
    scheduling,
    spec,
)

_FAMILIES: tuple[list[Rule], ...] = (
    config.RULES,
    platform.RULES,
    files.RULES,
    scheduling.RULES,
    instance_kinds.RULES,
    instances.RULES,
    parameters.RULES,
    parameter_keys.RULES,
    hook.RULES,
    package.RULES,
    spec.RULES,
    names.RULES,
    listing.RULES,
    dims.RULES,
    batching.RULES,
    ordinals.RULES,
    dtypes.RULES,
    outputs.RULES,
    rest.RULES,
)

RULES: tuple[Rule, ...] = tuple(
    sorted((rule for family in _FAMILIES for rule in family), key=lambda rule: int(rule.id[1:]))
)
