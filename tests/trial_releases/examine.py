"""Examine cases with the PyTorch of this interpreter: ``python -m tests.trial_releases.examine CASES.json``.

Each case is an object: ``package``, ``inputs``, ``reference``, ``setup``, ``model_name`` (paths; the last three may be
null), ``expected`` (the causes that are right; empty for a healthy sample), and whatever names it. It is examined by
``check``, by ``run`` and by ``run --reference``, with one warm worker; each answer is a line of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from aotidoctor.commands.diagnose import REFERENCE_MODULES, diagnose
from aotidoctor.model.case import Options
from aotidoctor.model.report import Report
from aotidoctor.runner import Runner

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


def main() -> None:
    """Examine every case of the file, in the modes that are named after it (all by default)."""
    cases = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    modes = sys.argv[2:] or MODES
    with Runner(environ=dict(os.environ), preload=REFERENCE_MODULES) as runner:
        for case in cases:
            for mode in modes:
                if mode == "reference" and not case.get("reference"):
                    continue
                print(json.dumps(examine(case, mode, runner)), flush=True)


if __name__ == "__main__":
    main()
