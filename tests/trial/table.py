"""The results of the trial as a table per command, and the judgement of a contract against the program's own facts."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

GOOD = ("right", "healthy", "harmless", "not for check")


def lines(path: Path) -> list[dict]:
    """The last line of each question: a later one replaces an earlier one."""
    found = {}
    if path.exists():
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            found[line["model"], line["command"], line["case"]] = line
    return list(found.values())


def done(path: Path, *, again: str | None) -> set[tuple[str, str, str]]:
    """The questions that need not be asked."""
    if again == "all":
        return set()
    return {
        (line["model"], line["command"], line["case"])
        for line in lines(path)
        if again is None or line["judged"] in GOOD
    }


def render(path: Path) -> str:
    """A line per command."""
    counted: dict[str, Counter] = defaultdict(Counter)
    models = set()
    for line in lines(path):
        models.add(line["model"])
        row = counted[line["command"]]
        kind = "faults" if line["causes"] else "healthy runs"
        row[kind] += 1
        row[line["judged"]] += 1
        if line["judged"] == "wrong" and (line["said"][0]["confidence"] or 0) > 0.8:
            row["wrong above 80 %"] += 1
        if line["causes"] and any(item["status"] == "confirmed" for item in line["said"][:1]):
            row["confirmed"] += 1
    columns = [
        "healthy runs",
        "faults",
        *sorted({key for row in counted.values() for key in row} - {"healthy runs", "faults"}),
    ]
    text = [f"{len(models)} models", " | ".join(["command", *columns])]
    text += [
        " | ".join([command, *(str(counted[command][column]) for column in columns)]) for command in sorted(counted)
    ]
    return "\n".join(text)


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
