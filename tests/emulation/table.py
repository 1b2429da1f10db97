"""What the emulation finds in all cases, as a table: `python -m tests.emulation.table` (make trial-emulation).

Each kind of case is carried out in children of its own; right is what ``truth`` says by construction. Exit status 1
where an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CLOSE, HALF_CLOSE = 1e-4, 1e-2
HALF = ("half", "bfloat16")
AIMS = {"kind": 0.95, "kernel": 0.95, "line": 0.95, "place": 0.90, "cause": 0.95}
WORDS = {"kind": "finding", "kernel": "kernel", "line": "line", "place": "lane or element", "cause": "cause"}
LEAST_FAULTS, LEAST_HEALTHY = 150, 60


def carried_out(kind, every, room, *wanted, causes=False, quick=False):
    """The cases of one kind, one after the other; ``causes`` are diagnosed as well, ``quick`` is the quick way."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    words = [sys.executable, str(HERE / "driver.py"), kind, str(room), str(every), *wanted]
    words += ["--causes"] * causes + ["--quick"] * quick
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=environ, check=False)
    if done.returncode:
        raise SystemExit(f"{kind}: ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_as_eager(case):
    """Whether every output is as near to eager's as its dtype lets it be."""
    limit = HALF_CLOSE if case["id"].startswith(HALF) else CLOSE
    return all(far is not None and far < limit for far in case["far"])


def rates(cases):
    """``{what: (right, judged)}``."""
    counts = Counter((what, right) for case in cases for what, right in case["right"].items() if right is not None)
    return {what: (counts[what, True], counts[what, True] + counts[what, False]) for what in WORDS}


def show(groups):
    """The table, and whether every aim is reached."""
    healthy = [case for case in groups["healthy"] if not case["fault"]]
    quiet = [case for case in healthy if not case["findings"] and not case.get("told")]
    whole = [case for case in healthy if not case["not_emulated"]]
    near = [case for case in healthy if "far" not in case or is_as_eager(case)]
    print(f"healthy runs                        {len(healthy)}")
    print(f"  without a finding or a cause      {len(quiet)}")
    if any("far" in case for case in healthy):
        print(f"  carried out to the end            {len(whole)}")
        print(f"  outputs as eager                  {len(near)}")
    fine = len(healthy) >= LEAST_HEALTHY and len(quiet) == len(near) == len(healthy)
    faults = [case for kind in ("inputs", "kernels") for case in groups[kind]]
    print(f"faults by input                     {len(groups['inputs'])}")
    print(f"faults in kernels                   {len(groups['kernels'])}")
    for what, (right, judged) in rates(faults).items():
        if not judged:
            continue
        share = right / judged
        fine &= share >= AIMS[what]
        print(f"  right {WORDS[what]:<27} {right} of {judged} ({100 * share:.1f} %, aim {100 * AIMS[what]:.0f} %)")
    for case in faults:
        wrong = [WORDS[what] for what, right in case["right"].items() if right is False]
        if wrong:
            print(f"  not right: {case['id']}: {', '.join(wrong)}")
    launches = [
        one for group in groups.values() for case in group for one in case["launches"] if one["state"] == "done"
    ]
    quick = [one for one in launches if one.get("way") == "quick"]
    print(f"launches                            {len(launches)}, by addresses alone {len(quick)}")
    return fine and len(faults) >= LEAST_FAULTS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="one case in so many")
    parser.add_argument("--keep", type=Path, help="a folder for the records")
    given = parser.parse_args()
    fine = True
    for way in ("full", "quick"):
        groups = {}
        for kind in ("healthy", "inputs", "kernels"):
            with tempfile.TemporaryDirectory() as room:
                groups[kind] = carried_out(kind, given.every, room, causes=way == "full", quick=way == "quick")
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{kind}-{way}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in groups[kind]))
        print(f"== {'every value computed' if way == 'full' else 'addresses alone'}")
        fine &= show(groups)
    sys.exit(0 if fine or given.every > 1 else 1)


if __name__ == "__main__":
    main()
