"""Operators that are defined by ``torch.library.custom_op``: what their first call imports is imported once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aotidoctor.commands.diagnose_package import diagnose
from aotidoctor.model.case import Options
from aotidoctor.model.evidence import Severity

pytestmark = pytest.mark.torch

# Each process that imports torch._dynamo writes a line.
SPY = """
import sys

class Spy:
    def find_spec(self, name, *_):
        if name == "torch._dynamo":
            with open({log!r}, "a") as file:
                file.write("imported\\n")

sys.meta_path.insert(0, Spy())
"""
OPERATOR = """
import torch

@torch.library.custom_op("zoopy::scale", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor

@scale.register_fake
def _(x, factor):
    return torch.empty_like(x)
"""


@pytest.mark.parametrize(("spread", "most"), [(False, 0), (True, 2)], ids=["one file", "a module beside it"])
def test_few_runs_import_the_compiler(packages, tmp_path: Path, spread: bool, most: int) -> None:
    """None where the setup file shows that it defines operators; else the first of those that share a load."""
    log, setup = tmp_path / "log", tmp_path / "setup_case.py"
    log.touch()
    (tmp_path / "operators_beside.py").write_text(OPERATOR)
    setup.write_text(SPY.format(log=str(log)) + ("import operators_beside\n" if spread else OPERATOR))
    report = diagnose(
        str(packages.package("scale")),
        str(packages.sample_path("scale")),
        Options(setup=str(setup)),
        environ=dict(os.environ),
    )
    assert report.verdict == "healthy", [item.message for item in report.findings if item.severity is Severity.ERROR]
    ran = [run.request.probe for run in report.runs]
    assert {"plain_run", "again", "memory_fill", "growth"} <= set(ran)
    assert len(log.read_text().splitlines()) <= most
