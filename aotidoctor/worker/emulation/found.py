"""What one emulated run found, in the order in which it happened; the first of a kind at a place stands for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Of one run: nobody reads more, and every launch may add one for each of its accesses.
MOST = 100
MOST_TEXT = 300


@dataclass(slots=True)
class Found:
    """Findings, what was not emulated and why, and the launches in order, each a JSON object."""

    findings: list[dict[str, Any]] = field(default_factory=list)
    not_emulated: dict[tuple[str, str], int] = field(default_factory=dict)
    launches: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0

    def add(self, kind: str, **facts: Any) -> None:
        """Keep a finding, unless the same launch had one of that kind at that line and argument."""
        place = (kind, facts.get("launch"), facts.get("line"), facts.get("argument"), facts.get("buffer"))
        for known in self.findings:
            if (known["kind"], *(known.get(key) for key in ("launch", "line", "argument", "buffer"))) == place:
                known["count"] = known.get("count", 1) + facts.get("count", 1)
                return
        if len(self.findings) >= MOST:
            self.left_out += 1
            return
        self.findings.append({"kind": kind, **facts})

    def skip(self, what: str, why: str) -> None:
        """``what`` was not carried out; counted where it happens again."""
        key = (what[:MOST_TEXT], why[:MOST_TEXT])
        self.not_emulated[key] = self.not_emulated.get(key, 0) + 1

    def result(self) -> dict[str, Any]:
        """All of it as JSON."""
        skipped = [{"what": what, "why": why, "times": times} for (what, why), times in self.not_emulated.items()]
        return {
            "findings": self.findings,
            "not_emulated": skipped[:MOST],
            "launches": self.launches,
            "left_out": self.left_out,
        }
