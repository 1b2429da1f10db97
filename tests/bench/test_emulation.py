"""Emulation against the same model run eagerly on the CPU. Nothing is asserted about time but an order of magnitude."""

from __future__ import annotations

import importlib.util
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


def test_sixty_launches_of_a_million_lanes(capsys):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, str(Path(__file__).with_name("emulation.py"))]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True, timeout=300)
    emulated, eager = map(float, done.stdout.split())
    with capsys.disabled():
        print(f"\nemulated: {emulated:.2f} s, eager: {eager:.2f} s, ratio {emulated / eager:.1f}")
    assert emulated < 100
