"""Treatments of one call of the compiled code: other values in place of what it wrote, the rest as it is.

They prove where wrong values come from, and are no remedy. Where the call itself writes the outputs there is nothing
after it, and so nothing to prove.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.treat_plan import Plan, found
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.json_types import JsonObject

VALUES = "AD-RUN-016"


def nodes(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """The values of the exported program in place of what the first diverging call wrote."""
    reference = case.options.reference
    if reference is None or not reference.endswith(".pt2"):
        return None
    return _plan(case, found(findings, VALUES, "diverges"), "put_nodes", "the program's values in place of")


def operator_nodes(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """The same for a custom operator in place of which the exported program has operators of PyTorch."""
    custom = [item for item in found(findings, VALUES, "diverges") if item.facts.get("custom") is True]
    return nodes(case, custom)


def zeros(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Zeros in place of the NaN and Inf that the first such call made."""
    return _plan(case, found(findings, VALUES, "nan", "inf"), "put_zeros", "zeros in place of the NaN and Inf in")


def _plan(case: Case, items: Sequence[Evidence], name: str, text: str) -> Plan | None:
    """None where values were followed in emulation: there the package cannot be called."""
    facts = items[0].facts if len(items) == 1 else {}
    symbol, index = facts.get("symbol"), facts.get("index")
    device = case.contract.needs.device_type if case.contract is not None else None
    if facts.get("beyond") is not True or not isinstance(symbol, str) or not isinstance(index, int):
        return None
    if device not in (None, "cpu"):
        return None
    step: JsonObject = {"op": name, "call": index, "symbol": symbol}
    return Plan(text=f"put {text} what {facts.get('kernel')} wrote, and leave the rest as it is", steps=(step,))
