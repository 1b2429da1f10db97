"""Try the tool with other releases of PyTorch: ``python -m tests.trial_releases.run 2.8.0 2.11.0``.

For each release an environment is made (2.2 GB, some minutes), the models are compiled in it, and the tool, run by that
Python, examines all their samples: statically, by running, and with the exported program. Then each environment
examines the packages of every other one, and what ``compat`` foretold of each is compared with what plain PyTorch does.
What is right is said by the models, and across releases by plain PyTorch. A table is printed; everything is removed.

KEEP=1 leaves it all in TRIAL_ROOT, and each step that is done there is not done again: after an interruption the same
command goes on, and without ``answers-RELEASE-HOST.jsonl`` that host examines those packages anew. MODELS="dense rows"
limits it to these models, MODES="run" to one of check, run and reference, ACROSS=0 leaves out other releases' packages.
RECORD=1 writes what each release makes of the packages in tests/data/releases to the record there (see ``kept``).

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

from aotidoctor.commands.compat import compat
from aotidoctor.model.fleet import HostVerdict
from tests.trial_releases.environment import environ, make
from tests.trial_releases.examine import MODES as ALL_MODES
from tests.trial_releases.examine import answered, key
from tests.trial_releases.table import Tally, show

ROOT = Path(os.environ.get("TRIAL_ROOT", Path(os.environ.get("TMPDIR", "/tmp")) / "aotidoctor-trial-releases"))
MODELS = os.environ.get("MODELS", "").split()
MODES = tuple(os.environ.get("MODES", "").split()) or ALL_MODES
ACROSS = os.environ.get("ACROSS") != "0"
# What plain PyTorch makes of a package that it can load.
LOADS = ("right", "loads")
REFUSED = ["abi-mismatch", "load-api", "artifact-layout"]


def main() -> int:
    """Exit status 1 where something healthy was called sick, or something sick was named wrongly and with confidence."""
    releases = sys.argv[1:]
    ROOT.mkdir(parents=True, exist_ok=True)
    try:
        pythons = {release: make(release, ROOT) for release in releases}
        for release, python in pythons.items():
            _python(python, "build", str(_folder(release)), *MODELS)
        tallies = [_inside(release, python) for release, python in pythons.items()]
        for python in pythons.values() if os.environ.get("RECORD") else ():
            _python(python, "kept")
        for host, python in pythons.items() if ACROSS else ():
            tallies += [_across(release, host, python) for release in releases if release != host]
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(ROOT, ignore_errors=True)
    print(show([tally for group in tallies for tally in group]))
    return int(any(tally.false_alarms or tally.confident_wrong for group in tallies for tally in group))


def _folder(release: str) -> Path:
    return ROOT / "models" / release


def _folders(release: str) -> list[Path]:
    """Of the models that were compiled, those that are asked for."""
    return [
        path.parent
        for path in sorted(_folder(release).glob("*/cases.json"))
        if not MODELS or path.parent.name in MODELS
    ]


def _cases(release: str) -> list[dict[str, Any]]:
    return [case for folder in _folders(release) for case in json.loads((folder / "cases.json").read_text())]


def _inside(release: str, python: Path) -> list[Tally]:
    """Without the models that this release itself computes wrongly: nothing of them is healthy."""
    ends = _ends(release, release, python)
    for folder, end in ends.items():
        if end not in LOADS:
            print(f"{release} itself: {Path(folder).name}: {end}", file=sys.stderr)
    cases = [case for case in _cases(release) if ends[str(Path(case["package"]).parent)] in LOADS]
    return list(_tallies(release, release, python, cases, MODES))


def _across(release: str, host: str, python: Path) -> list[Tally]:
    """Faults of the call in packages that plain PyTorch loads here; of the others, that they do not load.

    Without those that the release itself computes wrongly, as far as that was tried.
    """
    ends, own = _ends(release, host, python), _kept_ends(release, release)
    cases = []
    for case in _cases(release):
        end = ends[str(Path(case["package"]).parent)]
        if own.get(str(Path(case["package"]).parent), "right") not in LOADS:
            continue
        if end in LOADS:
            cases.append(case)
        elif case["sample"] == "good":
            print(f"{release} on {host}: {case['model']}: {end}", file=sys.stderr)
            cases.append({**case, "expected": REFUSED})
    return [_foretold(release, host, ends, cases), *_tallies(release, host, python, cases, ("run",))]


def _foretold(release: str, host: str, ends: dict[str, str], cases: list[dict[str, Any]]) -> Tally:
    """Whether ``compat`` said of each package what plain PyTorch did there."""
    told = []
    for case in cases:
        if case["sample"] == "good":
            loads = ends[str(Path(case["package"]).parent)] in LOADS
            name = case["model_name"]
            answer = compat([case["package"]], ["here"], [host], model_name=name, environ=dict(os.environ)).compat
            assert answer is not None
            said = answer.answers[0]
            if said.answer is HostVerdict.UNKNOWN:
                # A bare library does not say for which CPU it was compiled.
                print(f"{release} on {host}: {case['model']}: compat cannot tell: {said.unknown}", file=sys.stderr)
                continue
            told.append(
                {
                    **case,
                    "expected": [None] if loads else REFUSED,
                    "verdict": "healthy" if said.answer is HostVerdict.RUNS else "problem",
                    "diagnoses": [[cause, "suspected", 1.0] for cause in said.causes],
                    "cannot_examine": None,
                    "own_errors": [],
                }
            )
    return Tally.of(release, host, "compat", told)


def _ends(release: str, host: str, python: Path) -> dict[str, str]:
    """What plain PyTorch makes of each model: folder -> end."""
    ends = _kept_ends(release, host)
    if missing := [str(folder) for folder in _folders(release) if str(folder) not in ends]:
        told = _python(python, "plain", *missing)
        ends |= {one["folder"]: one["end"] for one in map(json.loads, told)}
        _ends_file(release, host).write_text(json.dumps(ends, indent=1))
    return ends


def _kept_ends(release: str, host: str) -> dict[str, str]:
    kept = _ends_file(release, host)
    ends: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
    return ends


def _ends_file(release: str, host: str) -> Path:
    return ROOT / f"plain-{release}-{host}.json"


def _tallies(
    release: str, host: str, python: Path, cases: list[dict[str, Any]], modes: tuple[str, ...]
) -> Iterator[Tally]:
    listed, answers = ROOT / f"cases-{release}-{host}.json", ROOT / f"answers-{release}-{host}.jsonl"
    listed.write_text(json.dumps(cases))
    _python(python, "examine", str(listed), str(answers), *modes)
    known = answered(answers)
    for mode in modes:
        told = [known[key(case, mode)] | {"expected": case["expected"]} for case in cases if key(case, mode) in known]
        yield Tally.of(release, host, mode, told)


def _python(python: Path, module: str, *words: str) -> list[str]:
    """The lines of JSON that a module of this folder prints, run by ``python``."""
    command = [str(python), "-W", "ignore", "-m", f"tests.trial_releases.{module}", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environ(ROOT), check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    sys.exit(main())
