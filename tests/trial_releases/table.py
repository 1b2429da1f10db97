"""Answers counted: what was healthy and called so, which faults were named rightly, wrongly, and wrongly with confidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# What reading alone cannot show: only naming something else would be wrong.
NEEDS_A_RUN = ("custom-op-missing", "custom-op-exception", "index-out-of-range")
# From this on a diagnosis sounds certain.
CONFIDENT = 0.7


@dataclass
class Tally:
    """One release on one host in one mode."""

    release: str
    host: str
    mode: str
    healthy: int = 0
    false_alarms: int = 0
    faults: int = 0
    right: int = 0
    wrong: int = 0
    confident_wrong: int = 0
    misses: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, release: str, host: str, mode: str, answers: list[dict[str, Any]]) -> Tally:
        """Count ``answers``; each that is not right is listed."""
        tally = cls(release, host, mode)
        for answer in answers:
            if not tally._take(answer):
                seen = answer.get("crashed") or [one[:3] for one in answer["diagnoses"]] or answer["cannot_examine"]
                tally.misses.append(f"{answer['model']}/{answer['sample']}: {seen or answer['verdict']}")
        return tally

    def _take(self, answer: dict[str, Any]) -> bool:
        causes, named = answer["expected"], answer.get("diagnoses") or []
        first = named[0][0] if named else None
        failed = "crashed" in answer or bool(answer["cannot_examine"]) or bool(answer["own_errors"])
        if causes == [None]:
            self.healthy += 1
            fine = not failed and answer["verdict"] == "healthy"
            self.false_alarms += not fine
            return fine
        if self.mode == "check" and causes[0] in NEEDS_A_RUN and first is None:
            return True
        self.faults += 1
        fine = not failed and first in causes
        self.right += fine
        if not fine and first is not None:
            self.wrong += 1
            self.confident_wrong += named[0][1] == "confirmed" or named[0][2] >= CONFIDENT
        return fine


def show(tallies: list[Tally]) -> str:
    """The table, and below it what was not right."""
    head = f"{'package':9} {'on':9} {'mode':10} {'healthy':>8} {'alarms':>7} {'faults':>7} {'right':>6} {'share':>6} {'wrong':>6} {'sure':>5}"
    lines = [head]
    for one in tallies:
        share = f"{one.right / one.faults:.0%}" if one.faults else "-"
        lines.append(
            f"{one.release:9} {one.host:9} {one.mode:10} {one.healthy:8} {one.false_alarms:7} {one.faults:7} "
            f"{one.right:6} {share:>6} {one.wrong:6} {one.confident_wrong:5}"
        )
    missed = [f"{one.release} on {one.host}, {one.mode}: {text}" for one in tallies for text in one.misses]
    return "\n".join([*lines, *(["", "Not as expected:"] if missed else []), *missed])
