"""Remedies of causes in the export, tried on real models: those that help become the advice, those that fail never do."""

from __future__ import annotations

import importlib.util
import os
import shutil
from textwrap import dedent

import pytest

from aotidoctor.commands.verify import VerifyRequest, verify
from aotidoctor.model.case import Options
from aotidoctor.model.report import Status
from tests.e2e.foundry.place import cache_dir

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
compiles = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compile packages with"),
]

MODELS = """
import torch
from torch.export import Dim, export

def module(function):
    class Model(torch.nn.Module):
        def forward(self, *args):
            return function(*args)
    return Model()

class Steps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]

class Two(torch.nn.Module):
    def forward(self, a, b):
        return a * 2 + b

class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2

class Named(torch.nn.Module):
    def forward(self, x):
        return x + len(torch.typename(x))

class Branch(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1

def channels():
    return export(torch.nn.Conv2d(3, 4, 3), (torch.randn(1, 5, 8, 8),))

def no_file():
    raise FileNotFoundError("no weights here")

def branch():
    return export(Branch(), (torch.randn(4),))

def strict():
    return export(Named(), (torch.randn(4),), strict=True)

def steps():
    return export(Steps().eval(), (torch.randn(2, 10, 4),), dynamic_shapes={"x": {1: Dim("time", min=2, max=64)}})

def reshaped():
    both = {0: Dim("rows"), 1: Dim("columns")}
    return export(module(lambda x, y: x + y.reshape(x.shape)), (torch.randn(4, 4), torch.randn(2, 8)), dynamic_shapes=(({}, both),))

def same():
    x = torch.randn(3)
    return export(Two(), (x, x))

def unused():
    x = torch.randn(3)
    return export(module(lambda a, b: b * 2), (x, x))

def one():
    x = torch.randn(1, 4)
    return export(Double(), (x,), dynamic_shapes={"x": {0: Dim("batch", max=8)}})

running = torch.zeros(4)

def closure():
    def forward(x):
        running.add_(x.mean(0))
        return x - running
    return export(module(forward), (torch.randn(2, 4),))

def model():
    return Two(), (torch.randn(3), torch.randn(3))
"""


@pytest.fixture
def ask(tmp_path, monkeypatch, runner):
    """Verify a function of ``MODELS``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_dir() / "xdg"))
    path = tmp_path / "models_here.py"
    path.write_text(dedent(MODELS))
    return lambda name: verify(
        VerifyRequest(program=f"{path}:{name}", options=Options(timeout=300.0)), environ=os.environ, runner=runner
    )


def attempts(report):
    return {item.facts["treatment"]: item.kind for item in report.findings if item.code == "AD-TREAT-001"}


class TestTheModelsOwnError:
    def test_plain_torch_raises_as_well(self, ask):
        report = ask("channels")
        first = report.diagnoses[0]
        assert (report.verdict, first.cause, first.status) == ("problem", "model-error", Status.CONFIRMED)
        assert "models_here.py:" in first.subject
        assert "to have 3 channels, but got 5" in first.title
        assert [item.kind for item in report.findings if item.code == "VERIFY-L07"] == ["model"]
        assert attempts(report) == {}
        assert first.remedy.tried == ""

    def test_the_function_itself_raises(self, ask):
        report = ask("no_file")
        assert report.diagnoses[0].cause == "model-error"
        assert "in no_file" in report.diagnoses[0].subject
        assert [item.kind for item in report.findings] == ["function"]


class TestNothingHelps:
    def test_what_failed_is_not_the_advice(self, ask):
        report = ask("branch")
        remedy = report.diagnoses[0].remedy
        assert report.diagnoses[0].cause == "unbacked-symint"
        assert attempts(report)["check_sizes"] == "stayed"
        assert "healed" not in attempts(report).values()
        assert "torch._check" not in remedy.text + remedy.command
        assert "strict" not in remedy.text + remedy.command
        assert "torch._check: the same error" in remedy.tried
        assert not remedy.verified


@pytest.mark.parametrize(("name", "says"), [("unused", ()), ("model", ())])
def test_healthy_programs_have_nothing_to_try(name, says, ask):
    report = ask(name)
    assert (report.verdict, report.diagnoses, attempts(report)) == ("healthy", (), {})


class TestOneHelps:
    pytestmark = compiles

    def test_strict_is_off(self, ask):
        report = ask("strict")
        first = report.diagnoses[0]
        assert attempts(report) == {"strict off": "healed"}
        assert (first.cause, first.status, first.remedy.verified) == ("export-unsupported", Status.CONFIRMED, True)
        assert "strict=False" in first.remedy.command
        assert first.remedy.tried == "tried: it compiles and agrees with eager"

    def test_dims_that_torch_fixes_in_silence(self, ask):
        report = ask("steps")
        remedy = report.diagnoses[0].remedy
        # It exports, with the ten steps of the example.
        assert attempts(report) == {"dims auto": "differs", "dims suggested": "healed"}
        assert "Dim.AUTO" not in remedy.text + remedy.command
        assert "time = 10" in remedy.command
        assert "that size only" in remedy.text

    def test_the_dims_that_were_tried_are_the_ones_to_write(self, ask):
        report = ask("reshaped")
        remedy = report.diagnoses[0].remedy
        assert attempts(report)["dims auto"] == "healed"
        auto = "torch.export.Dim.AUTO"
        assert f"dynamic_shapes=(({{}}, {{0: {auto}, 1: {auto}}}),))" in remedy.command

    def test_inputs_that_were_one_tensor(self, ask):
        report = ask("same")
        first = report.diagnoses[0]
        assert (first.cause, first.subject) == ("export-specialization", "args[0]")
        assert attempts(report) == {"own_inputs": "healed"}
        assert first.remedy.tried.endswith("also with other values in each input")
        assert "x.clone()" in first.remedy.command

    def test_an_example_of_one(self, ask):
        report = ask("one")
        assert attempts(report) == {"larger_example": "healed"}
        assert "also with 3 in dim 0 of args[0]" in report.diagnoses[0].remedy.tried

    def test_a_tensor_from_outside_becomes_a_buffer(self, ask):
        report = ask("closure")
        assert attempts(report) == {"buffers": "healed"}
        assert "register_buffer" in report.diagnoses[0].remedy.command
