"""``aotidoctor batch --command run``: real packages, one warm torch, and an item that takes its process with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from aotidoctor.fleet.results import read_results

pytestmark = pytest.mark.torch


def batch(folder, *words):
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor", "batch", *map(str, words), "--no-cache", "--jobs", "1", "--json"],
        cwd=folder, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    return json.loads(done.stdout), done.returncode


def test_runs_share_one_torch_and_say_what_run_says(packages, case_dir):
    import torch

    args, _ = packages.call("embedding")
    torch.save(
        tuple(each.float() if not each.is_floating_point() else each.double() for each in args), case_dir / "wrong.pt"
    )
    rows = [
        {"package": str(packages.package("conv")), "inputs": str(packages.sample_path("conv")), "expected": "healthy"},
        {"package": str(packages.package("embedding")), "inputs": "wrong.pt"},
        {"package": str(packages.package("embedding")), "inputs": str(packages.sample_path("embedding"))},
    ]
    (case_dir / "f.jsonl").write_text("\n".join(map(json.dumps, rows)))
    summary, status = batch(case_dir, "f.jsonl", "--command", "run", "-o", "out")
    healthy, wrong, other = read_results(str(case_dir / "out"))
    assert (summary["judged"], status) == (3, 1)
    assert (healthy.verdict, healthy.as_expected, other.verdict) == ("healthy", True, "healthy")
    assert (wrong.cause, wrong.cause_status) == ("input-dtype", "confirmed")
    report = json.loads((case_dir / "out" / wrong.report).read_text())
    # A torch that is imported once: the runs of a later item start without it.
    assert report["runs"]
    assert all(run["ending"] for run in report["runs"])


def test_an_item_that_kills_what_judges_it_costs_itself_only(packages, case_dir):
    """Its setup kills the process that judges, which is the parent of the warm worker's parent."""
    (case_dir / "kills.py").write_text(
        "import os, signal\n"
        "def judge():\n"
        "    pid = os.getpid()\n"
        "    while True:\n"
        "        fields = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()\n"
        "        pid = int(fields[1])\n"
        "        if b'batch_child' in open(f'/proc/{pid}/cmdline', 'rb').read():\n"
        "            return pid\n"
        "os.kill(judge(), signal.SIGKILL)\n"
    )
    rows = [
        {"package": str(packages.package("conv")), "inputs": str(packages.sample_path("conv")), "setup": "kills.py"},
        {"package": str(packages.package("conv")), "inputs": str(packages.sample_path("conv"))},
    ]
    (case_dir / "f.jsonl").write_text("\n".join(map(json.dumps, rows)))
    batch(case_dir, "f.jsonl", "--command", "run", "-o", "out")
    killed, well = read_results(str(case_dir / "out"))
    assert (killed.ending, killed.attempts, killed.verdict) == ("killed", 2, "unknown")
    assert "SIGKILL" in killed.problem
    assert well.verdict == "healthy"
