"""Examine cases with this interpreter's PyTorch: ``python -m tests.trial_releases.examine CASES.json ANSWERS.jsonl``.

Each case is an object: ``package``, ``inputs``, ``reference``, ``setup``, ``model_name`` (paths; the last three may be
null), ``expected`` (the causes that are right; empty for a healthy sample), and whatever names it. It is examined by
``check``, by ``run`` and by ``run --reference``, with one warm worker; each answer becomes a line of JSON at the end of
the second file. What is answered there is not examined again.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from aotidoctor.commands.diagnose_package import REFERENCE_MODULES, diagnose
from aotidoctor.model.case import Options
from aotidoctor.model.report import Report
from aotidoctor.runner.runner import Runner

MODES = ("check", "run", "reference")


def examine(case: dict[str, Any], mode: str, runner: Runner) -> dict[str, Any]:
    """One answer; ``crashed`` holds the traceback where the tool itself failed."""
    started = time.monotonic()
    options = Options(
        setup=case.get("setup") if mode != "check" else None,
        model_name=case.get("model_name"),
        reference=case.get("reference") if mode == "reference" else None,
        timeout=120.0,
    )
    try:
        report = diagnose(
            case["package"],
            case["inputs"],
            options,
            environ=dict(os.environ),
            static_only=mode == "check",
            runner=None if mode == "check" else runner,
        )
    except Exception:
        return {**case, "mode": mode, "crashed": traceback.format_exc()}
    return {**case, "mode": mode, "seconds": round(time.monotonic() - started, 2), **_facts(report)}


def _facts(report: Report) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "cannot_examine": report.cannot_examine,
        "diagnoses": [
            [item.cause, item.status.value, round(item.confidence, 3), item.subject, item.severity.value]
            for item in report.diagnoses
        ],
        "findings": [
            [item.code, item.kind, item.severity.value, item.subject, (item.message or item.observed)[:300]]
            for item in report.findings
        ],
        "own_errors": [[item.code, item.name, item.reason] for item in report.not_checked if item.is_fault],
        "not_checked": [[item.code, item.name, item.reason[:200]] for item in report.not_checked],
    }


def answered(answers: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """The answers of the file by their case and mode; a line that was cut off is none."""
    found = {}
    for line in answers.read_text(encoding="utf-8").splitlines() if answers.exists() else ():
        with suppress(ValueError):
            one = json.loads(line)
            found[key(one, one["mode"])] = one
    return found


def key(case: dict[str, Any], mode: str) -> tuple[str, ...]:
    """What an answer is known by."""
    return (case["release"], case["model"], case["sample"], mode)


def main() -> None:
    """Examine every case of the file, in the modes that are named after it (all by default)."""
    cases, answers = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])
    modes = sys.argv[3:] or MODES
    wanted = [(case, mode) for case in cases for mode in modes if mode != "reference" or case.get("reference")]
    known = answered(answers)
    wanted = [one for one in wanted if key(*one) not in known]
    with Runner(environ=dict(os.environ), preload=REFERENCE_MODULES) as runner, answers.open("a") as file:
        for case, mode in wanted:
            print(json.dumps(examine(case, mode, runner)), file=file, flush=True)


if __name__ == "__main__":
    main()
