"""The text of a kernel that no check holds back: the child that executes it can still do nothing but compute."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.worker.test_sandbox import WRITES, needs_landlock

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.torch,
    pytest.mark.emulate,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed"),
]


def told(how, room):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")))}
    for name in ("run", "outside"):
        (room / name).mkdir()
    command = [sys.executable, str(HERE / "last_wall.py"), how, str(room / "run"), str(room / "outside")]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_text_that_is_not_checked_could_do_everything(tmp_path):
    could = told("free", tmp_path)["could"]
    assert {name for name, succeeded in could.items() if not succeeded} <= {"trace the parent"}


@needs_landlock
def test_the_sandbox_holds_where_the_check_does_not(tmp_path):
    found = told("confined", tmp_path)
    assert {name for name, succeeded in found["could"].items() if succeeded} == {"compute"}
    assert found["could"].keys() > WRITES
    assert not (tmp_path / "outside" / "file").exists()
    # The emulation goes on, and is reported.
    assert (found["states"], found["left out"]) == (["done"], [])
