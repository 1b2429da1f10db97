"""Collects the violations that the JSON shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from aotidoctor.model.evidence import FactValue
from aotidoctor.model.exported import Violation
from aotidoctor.program.document import Node
from aotidoctor.program.findings import violation

# A program with ten thousand bad nodes has one fault.
MAX_EACH = 50
MAX_TEXT = 2000


@dataclass(slots=True)
class Found:
    """What was found so far; ``counts`` also counts what is beyond ``MAX_EACH`` of a code."""

    items: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        code: str,
        kind: str,
        *,
        observed: str,
        expected: str,
        node: Node | str | None = None,
        target: str | None = None,
        graph: str = "",
        **facts: FactValue,
    ) -> None:
        """Keep one violation of ``code`` (``G03``)."""
        self.counts[code] += 1
        if self.counts[code] > MAX_EACH:
            return
        name = node.name if isinstance(node, Node) else node
        self.items.append(
            violation(
                f"VERIFY-{code}",
                kind,
                observed=observed[:MAX_TEXT],
                expected=expected[:MAX_TEXT],
                node=name or None,
                target=target,
                graph=graph,
                where=node.where if isinstance(node, Node) else None,
                facts=facts,
            )
        )
