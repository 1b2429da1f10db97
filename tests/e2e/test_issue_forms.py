"""The bug forms, filled on this machine: the script runs, and no version is invented."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner
from warm import line
from warm_python import python

from aotidoctor.cli import build_app

pytestmark = pytest.mark.torch
UNKNOWN = "Could not collect"
FIELD = re.compile(r"^([A-Z][^\n:]*): ?(.*)$", re.MULTILINE)


def form(*words):
    return CliRunner().invoke(build_app(), [*map(str, words), "--format", "md", "--for", "pytorch"]).stdout


def fields(text):
    return {name.strip(): value.strip() for name, value in FIELD.findall(text)}


def test_each_version_is_that_of_collect_env_or_not_known():
    command = [sys.executable, "-m", "torch.utils.collect_env"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    theirs, told = fields(done.stdout), fields(form("env").partition("### Versions")[2])
    names = list(theirs)[1 : list(theirs).index("Caching allocator config") + 1]
    assert [name for name in told if name in names] == names
    known = [name for name in names if told[name] != UNKNOWN]
    # collect_env cannot tell a CPU build from an unknown one; of Python it also tells the compiler.
    for name in set(known) - {"CUDA used to build PyTorch", "Python version"}:
        assert told[name] == theirs[name] or told[name] == "No CUDA", name
    assert theirs["Python version"].startswith(told["Python version"])
    assert len(known) >= 12
    assert told["Model name"] == theirs["Model name"]


def test_the_script_of_the_form_fails_alike(packages, tmp_path):
    import torch

    torch.save((torch.tensor([1, 5, 9, 100, 0, 42, 17, 3]),), tmp_path / "range.pt")
    with line().lent():
        text = form("run", packages.package("embedding"), "-i", tmp_path / "range.pt", "--no-redact")
    assert "index-out-of-range" in text
    scripts = re.findall(r"```python\n(import torch\n.*?)\n```", text, re.DOTALL)
    assert len(scripts) == 1
    done = python(scripts[0], cwd=tmp_path)
    assert done.returncode == 1
    assert "index out of bounds: 0 <= tmp2 < 100L" in done.stderr
