"""The results of the trial as a table per command, and the judgement of a contract against the program's own facts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

GOOD = ("right", "healthy", "harmless", "not for check")


def lines(path: Path) -> list[dict]:
    """The last line of each question: a later one replaces an earlier one."""
    found = {}
    if path.exists():
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            found[line["model"], line["command"], line["case"]] = line
    return list(found.values())


def done(path: Path, *, again: str | None, commit: str = "") -> set[tuple[str, str, str]]:
    """The questions that need not be asked."""
    if again == "all":
        return set()
    return {
        (line["model"], line["command"], line["case"])
        for line in lines(path)
        if again is None
        or (again == "misses" and line["judged"] in GOOD)
        or (again == "commit" and line.get("commit") == commit)
    }


@dataclass(frozen=True, slots=True)
class Row:
    """The lines of one command (or of all), counted.

    ``asked`` are the faults that the command can be asked about: without those whose outcome plain PyTorch shows to be
    the healthy one, and without those that only values tell where a command does not look at values.
    """

    command: str
    lines: tuple[dict, ...]

    def among(self, *judged: str) -> list[dict]:
        return [line for line in self.lines if line["causes"] and line["judged"] in judged]

    def cells(self) -> dict[str, object]:
        healthy = [line for line in self.lines if not line["causes"] and not line["judged"].startswith("sample is not")]
        faults = [line for line in self.lines if line["causes"]]
        asked = len(faults) - len(self.among("harmless", "not for check"))
        right, wrong = self.among("right"), self.among("wrong", "wrong subject")
        return {
            "command": self.command,
            "architectures": len({line["model"] for line in self.lines}),
            "healthy": len(healthy),
            "alarms": sum(line["judged"] != "healthy" for line in healthy),
            "faults": asked,
            "right at rank 1, with subject": f"{len(right)} ({len(right) / asked:.1%})" if asked else "",
            "wrong": len(wrong),
            "wrong above 80 %": sum((line["said"][0]["confidence"] or 0) > 0.8 for line in wrong),
            "no cause": asked - len(right) - len(wrong),
            "confirmed": sum(line["said"][0]["status"] == "confirmed" for line in right),
            "harmless": len(self.among("harmless")),
            "only values tell": len(self.among("not for check")),
        }


def render(path: Path) -> str:
    """A table in Markdown with a line per command; then the traits, the commits, and every line that is not good."""
    found = lines(path)
    commands = [
        Row(name, tuple(line for line in found if line["command"] == name))
        for name in sorted({line["command"] for line in found})
    ]
    rows = [row.cells() for row in (*commands, Row("all", tuple(found)))]
    text = [
        " | ".join(rows[0]),
        " | ".join("---" for _ in rows[0]),
        *(" | ".join(map(str, row.values())) for row in rows),
        "",
    ]
    text += [f"{trait}: {count}" for trait, count in Counter(
        trait for traits in {line["model"]: tuple(line["traits"]) for line in found}.values() for trait in traits).most_common()]  # fmt: skip
    text += [
        "",
        "Commits: "
        + ", ".join(
            f"{name} ({count})" for name, count in Counter(line.get("commit", "unknown") for line in found).items()
        ),
    ]
    return "\n".join([*text, "", *(_told(line) for line in found if line["judged"] not in GOOD)])


def _told(line: dict) -> str:
    first = line["said"][0] if line["said"] else None
    said = (
        f"{first['cause']} ({first['confidence']}, {first['subject']})"
        if first
        else f"exit status {line['exit']}, {line['verdict']}"
    )
    return f"{line['model']} {line['command']} {line['case']}: {line['judged']}: {said}; right: {', '.join(line['causes']) or 'healthy'}"


def contract_verdict(report: dict, facts: dict) -> str:
    """Output shapes, strides and dtypes of the contract against the program's: static ones are equal, others unknown or symbols."""
    outputs = (report.get("contract") or {}).get("outputs") or []
    wanted = [item for item in facts["outputs"] if item["shape"] is not None]
    if len(outputs) != len(wanted):
        return f"wrong: {len(outputs)} outputs for {len(wanted)}"
    for number, (ours, theirs) in enumerate(zip(outputs, wanted, strict=True)):
        problem = _output_problem(ours, theirs)
        if problem:
            return f"wrong: output {number}: {problem}"
    return "healthy"


def _output_problem(ours: dict, theirs: dict) -> str | None:
    """Shape (symbols have the program's names), dtype and device; what was not recovered is a problem of its own."""
    shape = ours.get("shape")
    if shape is None:
        return f"shape not recovered, {theirs['shape']}"
    if [_spelt(size) for size in shape] != [_spelt(size) for size in theirs["shape"]]:
        return f"shape {shape} for {theirs['shape']}"
    if ours.get("dtype") != theirs["dtype"].removeprefix("torch."):
        return f"dtype {ours.get('dtype')} for {theirs['dtype']}"
    return None if ours.get("device_type") in ("cpu", None) else f"device {ours['device_type']}"


def _spelt(size: object) -> str:
    return str(size).replace(" ", "")


if __name__ == "__main__":
    import sys

    print(render(Path(sys.argv[1])))
