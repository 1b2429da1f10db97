"""Emulation against the same model run eagerly on the CPU. Nothing is asserted about time but an order of magnitude."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.bench,
    pytest.mark.torch,
    pytest.mark.emulate,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed"),
]
ROOT = Path(__file__).parent.parent.parent


def test_launches_of_a_million_lanes(capsys):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, str(Path(__file__).with_name("emulation.py"))]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True, timeout=300)
    told = json.loads(done.stdout)
    with capsys.disabled():
        print()
        for name, value in told.items():
            print(f"{name:<42} {value:.4g}")
    assert told["pointwise: 60 launches, full"] < 100
    assert told["pointwise: 60 launches, quick"] < told["pointwise: 60 launches, full"] / 5
    # Ten times the lanes may take ten times as long, and something for a noisy neighbour.
    for name in ("pointwise", "embedding", "index_put"):
        assert told[f"{name}: 10000000 lanes, quick"] < 30 * max(told[f"{name}: 1000000 lanes, quick"], 0.01)
    assert told["memory of 10^7 lanes, to the tensors"] < 3
