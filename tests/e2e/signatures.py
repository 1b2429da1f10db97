"""The signature of every case: ``python tests/e2e/signatures.py [NAME...]`` asks ``aotidoctor run`` and keeps them.

``signatures.json`` holds the classes of equal faults, one per exact signature, with the cases in it. They were made on
another day, in other folders and processes than the tests run in, so each case test says once more that none of that
counts. A change of these is a change of the rules: their version (``SIGNATURE_VERSION``) has to change with it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

RECORD = Path(__file__).with_name("signatures.json")


def recorded() -> dict[str, dict]:
    """By case: ``exact``, ``family``, ``cause``, ``parts``."""
    classes = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return {case: {"exact": exact, **about} for exact, about in classes.items() for case in about["cases"]}


def keep(found: dict[str, dict]) -> None:
    """Write the classes anew."""
    classes: dict[str, dict] = {}
    for name in sorted(found):
        one = found[name]
        about = {key: one[key] for key in ("family", "cause", "parts")}
        classes.setdefault(one["exact"], {**about, "cases": []})["cases"].append(name)
    RECORD.write_text(json.dumps(classes, indent=1, ensure_ascii=False) + "\n")


def of_report(report: dict) -> dict | None:
    """What is kept of a JSON report; None of a healthy one."""
    made = report["fingerprint"]
    if made is None or not report["diagnoses"]:
        return None
    parts = {part["rule"]: part["text"] for part in made["parts"] if part["rule"] != "cause"}
    return {"exact": made["exact"], "family": made["family"], "cause": report["diagnoses"][0]["cause"], "parts": parts}


def main(names: list[str]) -> None:
    """Ask each case; one line per case whose signature changed."""
    sys.path.insert(0, str(Path(__file__).parent))
    from foundry.cases import Kit
    from foundry.place import cache_dir
    from foundry.registry import BY_NAME, FAULTS
    from test_cases import ask
    from warm import CommandLine

    found = recorded()
    warm = tempfile.TemporaryDirectory(prefix="signatures-")
    line = CommandLine(Path(warm.name))
    for case in [BY_NAME[name] for name in names] or FAULTS:
        with tempfile.TemporaryDirectory(prefix="signature-") as room:
            made = of_report(ask(case, Kit(cache=cache_dir()), Path(room), line).report)
        before = found.pop(case.name, None)
        if made is not None:
            found[case.name] = made
        if (made or {}).get("exact") != (before or {}).get("exact"):
            print(case.name, before and before["parts"], "->", made and made["parts"], flush=True)
        keep(found)
    line.close()
    warm.cleanup()


if __name__ == "__main__":
    main(sys.argv[1:])
