"""A real refusal of an executable stack: the kernel's own policy (PR_SET_MDWE), which children inherit.

It forbids a process to make memory executable that was not, so that ``dlopen`` fails as it does on glibc 2.41, under
SELinux or with systemd's ``MemoryDenyWriteExecute=yes``. Linux 6.3 and later have it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.machines import needs_vector_units

PACKAGE = Path(__file__).parents[1] / "data" / "releases" / "2.8.0" / "dyn" / "model.pt2"
UNDER_POLICY = """
import ctypes, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit(77)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
LOADS = "import sys; from torch._C._aoti import AOTIModelPackageLoader as L; L(sys.argv[1], 'model', False, 1, -1)"


def under_policy(*words):
    done = subprocess.run(
        [sys.executable, "-c", UNDER_POLICY, *map(str, words)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode == 77:
        pytest.skip("the kernel has no PR_SET_MDWE")
    return done


@needs_vector_units
@pytest.mark.torch
def test_it_is_named_and_proved_where_it_is_refused(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    plain = under_policy("-W", "ignore", "-c", LOADS, PACKAGE)
    assert "cannot enable executable stack" in plain.stderr
    done = under_policy("-m", "aotidoctor", "run", PACKAGE, "--generate", "--json")
    assert done.returncode == 1, done.stderr
    (diagnosis, *_) = json.loads(done.stdout)["diagnoses"]
    assert (diagnosis["cause"], diagnosis["status"]) == ("executable-stack", "confirmed")
    assert diagnosis["remedy"]["verified"] is True


@needs_vector_units
@pytest.mark.torch
def test_the_fixed_copy_loads_under_the_same_policy(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    fixed = tmp_path / "fixed.pt2"
    assert under_policy("-m", "aotidoctor", "fix", "execstack", PACKAGE, "-o", fixed).returncode == 0
    done = under_policy("-W", "ignore", "-c", LOADS, fixed)
    assert done.returncode == 0, done.stderr
