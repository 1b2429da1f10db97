"""The simulated driver and the emulation see the same fault: the same launches, and the same one of them at fault.

What the simulated driver's launch trace said is recorded in ``tests/data/cuda_sim``, what the emulation saw in
``tests/data/emulation/simulated.json``; the second is made again where Triton is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
RECORD = DATA / "emulation" / "simulated.json"
EMULATED = json.loads(RECORD.read_text())


def traced(scenario):
    """The launches of the package's kernels in the trace, and the one that failed first, counted from 1."""
    runs = json.loads((DATA / "cuda_sim" / f"{scenario}.json").read_text())["runs"]
    (result,) = (run["result"] for run in runs if run["request"]["probe"] == "launch_trace")
    calls = [call for call in result["launch_recent"] if call["symbol"] == "cuLaunchKernel"]
    failed = result["launch_failure"]["call"]
    number = next(at for at, call in enumerate(calls, 1) if call["number"] == failed["number"])
    return [[call["kernel"], call["grid"]] for call in calls], number, failed


@pytest.mark.parametrize("scenario", EMULATED)
def test_emulation_and_the_simulated_driver_agree(scenario):
    told = EMULATED[scenario]
    launches, number, failed = traced(scenario)
    assert told["launches"][: len(launches)] == launches
    assert (told["launch"], told["kernel"], told["grid"]) == (number, failed["kernel"], failed["grid"])


@pytest.mark.torch
@pytest.mark.emulate
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_record_is_what_the_emulation_sees(tmp_path):
    root = str(HERE.parent.parent)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, str(HERE / "simulated.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=200, check=True)
    assert json.loads(done.stdout) == EMULATED
