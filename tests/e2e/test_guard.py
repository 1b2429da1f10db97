"""``aotidoctor.guard()`` in programs that call a package: the cause is named while the program goes its way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from warm_python import python

from tests.e2e.foundry.place import compiler_answers

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, torch, aotidoctor
package, dtype, how = sys.argv[1:]
x = torch.ones(4, 16) if dtype == "rows" else torch.arange(1, 9, dtype=getattr(torch, dtype))
inputs = {"live": (x,), "file": "sample.pt", "none": None}[how]
if how == "file":
    torch.save((x,), "sample.pt")
try:
    with aotidoctor.guard(inputs=inputs, report="json:report.json"):
        print("answer", tuple(torch._inductor.aoti_load_package(package)(x).shape))
except RuntimeError as error:
    print("caught", str(error).splitlines()[0])
"""


@pytest.fixture
def run(tmp_path):
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    (tmp_path / "tmp").mkdir()
    environ = {**os.environ, **compiler_answers(), "PYTHONPATH": path, "TMPDIR": str(tmp_path / "tmp")}

    def run(package, dtype, how, *, fresh=False):
        done = (
            subprocess.run(
                [sys.executable, "-c", PROGRAM, str(package), dtype, how],
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env=environ,
                check=False,
                timeout=300,
            )
            if fresh
            else python(PROGRAM, package, dtype, how, cwd=tmp_path, env=environ)
        )
        report = tmp_path / "report.json"
        for _ in range(800 if done.returncode < 0 else 0):
            if report.exists():
                break
            time.sleep(0.025)
        done.report = json.loads(report.read_text()) if report.exists() else None
        return done

    return run


def test_an_answer_is_an_answer(run, packages):
    done = run(packages.package("embedding"), "int64", "live")
    assert (done.returncode, done.stdout, done.report) == (0, "answer (8, 16)\n", None)


@pytest.mark.parametrize("how", ["live", "file"])
def test_the_inputs_at_hand_name_the_cause(run, packages, how):
    done = run(packages.package("embedding"), "int32", how, fresh=how == "live")
    assert (done.returncode, done.stdout) == (0, "caught index out of bounds: 0 <= tmp2 < 100L\n")
    first = done.report["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("input-dtype", "args[0]")
    assert first["remedy"]["command"] == "args[0] = args[0].to(torch.int64)"
    assert "input-dtype" in done.stderr
    leaf = done.report["inputs"]["leaves"][0]
    assert (leaf["dtype"], leaf["shape"]) == ("int32", [8])


def test_without_inputs_those_of_the_call_that_raised_are_taken(run, packages):
    done = run(packages.package("embedding"), "int32", "none")
    first = done.report["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("input-dtype", "args[0]")
    assert done.report["contract"]["n_inputs"] == 1


def test_a_death_in_the_first_call(run, packages):
    done = run(packages.package("external"), "rows", "live", fresh=True)
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "")
    assert done.report["diagnoses"][0]["cause"] == "weights-not-loaded"
    assert done.report["runs"][0]["signal"] == "SIGSEGV"


RANKED = """
import os, torch, aotidoctor
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
try:
    with aotidoctor.guard(inputs=(torch.ones(2),), report=f"json:rank{rank}.json", quiet=True):
        total = torch.ones(1)
        torch.distributed.all_reduce(total)
        if rank == 1:
            raise RuntimeError(f"CUDA error: an illegal memory access was encountered, {int(total)} ranks")
except RuntimeError as error:
    print("caught", error)
torch.distributed.destroy_process_group()
"""


def test_a_report_says_which_rank_it_is_of(tmp_path):
    (tmp_path / "ranked.py").write_text(RANKED)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "ranked.py"]
    environ = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=280, check=False)
    assert "caught" in done.stdout, done.stderr[-2000:]
    assert "2 ranks" in done.stdout
    # The other rank has no failure to report.
    assert sorted(one.name for one in tmp_path.glob("*.json")) == ["rank1.json"]
    report = json.loads((tmp_path / "rank1.json").read_text())
    known = report["host"]["environment"]
    assert {name: known[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")} == {
        "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2",
    }  # fmt: skip
    assert report["diagnoses"][0]["cause"] == "cuda-illegal-access"
