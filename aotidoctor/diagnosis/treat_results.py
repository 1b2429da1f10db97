"""Treatments of one call of the compiled code or of an operator: other values in place of its own, the rest as it is.

They prove where wrong values come from, and are no remedy. Where the call itself writes the outputs there is nothing
after it, and so nothing to prove.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.treat_plan import Plan, exported, found
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.json_types import JsonObject

VALUES, ALONE = "AD-RUN-016", "AD-RUN-015"
_ENDS_ALONE = ("signalled", "raised", "exited", "timed-out", "bad-return", "fake-kernel")


def nodes(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """The values of the exported program in place of what the first diverging call wrote."""
    if exported(case) is None:
        return None
    return _plan(case, found(findings, VALUES, "diverges"), "put_nodes", "the program's values in place of")


def operator_nodes(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """The same for a custom operator in place of which the exported program has operators of PyTorch."""
    custom = [item for item in found(findings, VALUES, "diverges") if item.facts.get("custom") is True]
    return nodes(case, custom)


def zeros(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Zeros in place of the NaN and Inf that the first such call made."""
    return _plan(case, found(findings, VALUES, "nan", "inf"), "put_zeros", "zeros in place of the NaN and Inf in")


def stand_in(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Zeros of the form that its fake kernel promises from the one operator that fails when it is called alone."""
    names = list(dict.fromkeys(item.subject for item in found(findings, ALONE, *_ENDS_ALONE)))
    if len(names) != 1 or names[0] is None:
        return None
    return Plan(
        text=f"put zeros of the promised form in place of what {names[0]} returns, to see the call return",
        steps=({"op": "stand_in_operator", "target": names[0]},),
    )


def _plan(case: Case, items: Sequence[Evidence], name: str, text: str) -> Plan | None:
    """None where values were followed in emulation: there the package cannot be called."""
    facts = items[0].facts if len(items) == 1 else {}
    symbol, index = facts.get("symbol"), facts.get("index")
    if facts.get("beyond") is not True or not isinstance(symbol, str) or not isinstance(index, int):
        return None
    if case.needs.device_type not in (None, "cpu"):
        return None
    step: JsonObject = {"op": name, "call": index, "symbol": symbol}
    return Plan(text=f"put {text} what {facts.get('kernel')} wrote, and leave the rest as it is", steps=(step,))
