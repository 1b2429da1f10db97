"""What failed, in the words of the run, as far as the static facts of the package can be asked about it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aotidoctor.model.evidence import Evidence, FactValue
from aotidoctor.model.record import record

INDEX, DIVISION, ASSERTION = "index", "division", "assertion"
# An operator of ATen checked its own arguments; ``offsets`` is what it may find besides an index.
OPERATOR, OFFSETS = "operator", "offsets"
_KINDS = {"index-out-of-bounds": INDEX, "cuda-assert": INDEX, "integer-division": DIVISION, "runtime-assert": ASSERTION}
_NUMBER = re.compile(r"-?\d{1,19}$")


@record
class Failure:
    """One failure.

    ``kind`` is ``index``, ``division``, ``assertion``, ``operator`` or ``offsets`` (refused by an operator).
    ``variable`` and ``bound`` are the words of a bounds error, ``line`` the line of the kernel's source that raised
    it; ``condition`` and ``value`` those of an assertion.
    ``source_line`` is the line in the file that a Triton kernel was compiled from, which the package holds a copy of.
    """

    kind: str
    kernel: str | None = None
    variable: str | None = None
    bound: str | None = None
    line: int | None = None
    source_line: int | None = None
    condition: str | None = None
    value: int | None = None


def failure_of(item: Evidence) -> Failure | None:
    """The failure that a run's evidence tells of; None for one that static facts have no more to say about."""
    facts = item.facts
    kind = _KINDS.get(str(facts.get("symptom")))
    kernel = _text(facts.get("kernel"))
    if kind == INDEX and "variable" not in facts:
        return _of_operator(facts)
    if kind is None:
        return None
    line, source_line = facts.get("file_line"), facts.get("device_line")
    return Failure(
        kind=kind,
        kernel=kernel,
        variable=_text(facts.get("variable")),
        bound=_text(facts.get("bound")),
        line=line if isinstance(line, int) and kernel is not None else None,
        source_line=source_line if isinstance(source_line, int) else None,
        condition=_text(facts.get("condition")),
        value=_number(facts.get("value")),
    )


def _of_operator(facts: Mapping[str, FactValue]) -> Failure | None:
    """An operator of ATen that checks its own index says nothing of a kernel; the runtime names the call."""
    shim, line = _text(facts.get("shim")), facts.get("wrapper_line")
    if shim is None or not isinstance(line, int):
        return None
    return Failure(
        kind=OPERATOR, kernel=shim, line=line, bound=_text(facts.get("size")), value=_number(facts.get("value"))
    )


def _text(value: FactValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: FactValue) -> int | None:
    if isinstance(value, str) and _NUMBER.match(value):
        return int(value)
    return value if isinstance(value, int) else None
