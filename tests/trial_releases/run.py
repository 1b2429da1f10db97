"""Try the tool with other releases of PyTorch: ``python -m tests.trial_releases.run 2.8.0 2.11.0``.

For each release an environment is made (2.2 GB, some minutes), the models are compiled in it, and the tool, run by that
Python, examines all their samples: statically, by running, and with the exported program. Then each environment
examines the packages of every other one. What is right is said by the models, and across releases by plain PyTorch. A
table is printed; the environments are removed, unless KEEP=1. MODELS="dense rows" limits it to these models.

Not part of the test suite: it downloads gigabytes, and takes half an hour per release on two cores.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.trial_releases.environment import environ, make
from tests.trial_releases.table import Tally, show

ROOT = Path(os.environ.get("TRIAL_ROOT", Path(os.environ.get("TMPDIR", "/tmp")) / "aotidoctor-trial-releases"))


def main() -> int:
    """Exit status 1 where something healthy was called sick, or something sick was named wrongly and with confidence."""
    releases = sys.argv[1:]
    ROOT.mkdir(parents=True, exist_ok=True)
    try:
        pythons = {release: make(release, ROOT) for release in releases}
        for release, python in pythons.items():
            _python(python, "build", str(_folder(release)), *os.environ.get("MODELS", "").split())
        tallies = [_inside(release, python) for release, python in pythons.items()]
        for host, python in pythons.items():
            tallies += [_across(release, host, python) for release in releases if release != host]
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(ROOT, ignore_errors=True)
    print(show([tally for group in tallies for tally in group]))
    return int(any(tally.false_alarms or tally.confident_wrong for group in tallies for tally in group))


def _folder(release: str) -> Path:
    return ROOT / "models" / release


def _cases(release: str) -> list[dict[str, Any]]:
    return [case for path in sorted(_folder(release).glob("*/cases.json")) for case in json.loads(path.read_text())]


def _inside(release: str, python: Path) -> list[Tally]:
    return list(_tallies(release, release, python, _cases(release), ("check", "run", "reference")))


def _across(release: str, host: str, python: Path) -> list[Tally]:
    """Faults of the call in packages that plain PyTorch loads here; of the others, that they do not load."""
    folders = sorted(path.parent for path in _folder(release).glob("*/cases.json"))
    ends = {one["folder"]: one["end"] for one in _python(python, "plain", *map(str, folders))}
    cases = []
    for case in _cases(release):
        end = ends[str(Path(case["package"]).parent)]
        loads = end == "right" or case["expected"][:1] == ["weights-not-loaded"]
        if loads:
            cases.append(case)
        elif case["sample"] == "good":
            print(f"{release} on {host}: {case['model']}: {end}", file=sys.stderr)
            cases.append({**case, "expected": ["abi-mismatch", "load-api", "artifact-layout"]})
    return list(_tallies(release, host, python, cases, ("run",)))


def _tallies(
    release: str, host: str, python: Path, cases: list[dict[str, Any]], modes: tuple[str, ...]
) -> Iterator[Tally]:
    listed = ROOT / f"cases-{release}-{host}.json"
    listed.write_text(json.dumps(cases))
    answers = list(_python(python, "examine", str(listed), *modes))
    (ROOT / f"answers-{release}-{host}.json").write_text(json.dumps(answers, indent=1))
    for mode in modes:
        yield Tally.of(release, host, mode, [one for one in answers if one["mode"] == mode])


def _python(python: Path, module: str, *words: str) -> list[dict[str, Any]]:
    """The lines of JSON that a module of this folder prints, run by ``python``."""
    command = [str(python), "-W", "ignore", "-m", f"tests.trial_releases.{module}", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environ(ROOT), check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())
