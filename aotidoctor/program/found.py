"""Collects the violations of one program, whoever reads it: the archive's own reader, or the child that rebuilds it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from aotidoctor.model.evidence import FactValue
from aotidoctor.model.exported import Violation, Where
from aotidoctor.model.record import record

# A program with ten thousand bad nodes has one fault; the count says the rest.
MAX_EACH = 50
MAX_TEXT = 2000


@record
class Place:
    """A node of a graph, with the line of the user's source that it comes from."""

    name: str
    where: Where | None = None


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
        node: Place | str | None = None,
        target: str | None = None,
        graph: str = "",
        **facts: FactValue,
    ) -> None:
        """Keep one violation of ``code`` (``G03``). ``target`` is what the node calls or refers to."""
        self.counts[code] += 1
        if self.counts[code] > MAX_EACH:
            return
        self.items.append(
            Violation(
                code=f"VERIFY-{code}",
                kind=kind,
                observed=observed[:MAX_TEXT],
                expected=expected[:MAX_TEXT],
                node=(node.name if isinstance(node, Place) else node) or None,
                target=target,
                graph=graph,
                where=node.where if isinstance(node, Place) else None,
                facts=facts,
            )
        )

    def cut(self) -> dict[str, int]:
        """Code -> how many violations of it were left out."""
        return {code: count - MAX_EACH for code, count in self.counts.items() if count > MAX_EACH}

    def broken(self) -> bool:
        """Whether a rule of PyTorch's verifier is broken."""
        return any(code.startswith(("G", "S")) for code in self.counts)
