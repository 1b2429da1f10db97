"""A run in a process that was started without stdin, stdout or stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.machines import needs_vector_units

DYN = Path(__file__).parents[1] / "data" / "releases" / "2.8.0" / "dyn"


@needs_vector_units
@pytest.mark.torch
@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_a_run_without_them_is_a_run(tmp_path, closed):
    pytest.importorskip("torch", reason="torch is not installed")
    words = [sys.executable, "-m", "aotidoctor", "run", DYN / "model.pt2", "--inputs", DYN / "samples" / "good.pt"]
    line = f'exec "$@" --json --report json:{tmp_path / "report.json"} {closed}'
    done = subprocess.run(["sh", "-c", line, "sh", *words], stdout=subprocess.PIPE, timeout=300, check=False)
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "healthy"
    # Without stdout the document that was asked for there is not written.
    assert done.returncode == (4 if ">&- 2" in closed else 0)


STATIC = {
    "map": ("map", DYN / "model.pt2"),
    "explain": ("explain",),
    "explain a cause": ("explain", "input-dtype"),
    "env": ("env",),
    "check": ("check", DYN / "model.pt2"),
    "diff": ("diff", DYN / "model.pt2", DYN / "model.pt2"),
    "contract": ("contract", DYN / "model.pt2"),
}


@pytest.mark.parametrize("name", STATIC)
def test_without_stdout_a_command_says_that_it_could_not_print(name):
    words = [sys.executable, "-m", "aotidoctor", *map(str, STATIC[name])]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, timeout=300, check=False
    )
    assert (done.returncode, "could not write to stdout" in done.stderr, "Traceback" in done.stderr) == (4, True, False)
