"""`run --trust-pickle` of a function that the torch here precompiled: loaded, called, and refused by its guards."""

from __future__ import annotations

import json

import pytest
import warm_python

MAKE = """
import sys, torch

def scaled(x, y, *, flag=True):
    return torch.sin(x @ y) if flag else x

inputs = torch.randn(4, 8), torch.randn(8, 4)
with torch._dynamo.config.patch(enable_aot_compile=True):
    made = torch.compile(scaled, fullgraph=True).aot_compile((inputs, {}))
made.save_compiled_function(sys.argv[1])
torch.save(inputs, sys.argv[2])
torch.save((torch.randn(5, 8), inputs[1]), sys.argv[3])
"""


@pytest.fixture(scope="module")
def function(tmp_path_factory):
    import torch

    if not hasattr(torch.compiler, "load_compiled_function"):
        pytest.skip("this torch has no aot_compile")
    place = tmp_path_factory.mktemp("precompiled")
    done = warm_python.python(MAKE, "function.bin", "good.pt", "wrong.pt", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


@pytest.mark.torch
def test_function_is_loaded_and_called_in_a_child(function, command_line):
    words = ("run", "function.bin", "--trust-pickle", "--json", "--inputs")
    report = json.loads(command_line(*words, "good.pt", cwd=function).stdout)
    (called,) = [one for one in report["findings"] if one["code"] == "AD-RUN-001"]
    assert (report["verdict"], called["kind"], called["observed"]) == ("healthy", "ok", "1 output(s)")
    assert report["artifact"]["precompiled"]["functions"][0]["name"] == "scaled"
    report = json.loads(command_line(*words, "wrong.pt", cwd=function).stdout)
    assert [(one["cause"], one["subject"]) for one in report["diagnoses"]] == [("input-shape", "args[0].shape[0]")]
    (raised,) = [one for one in report["findings"] if one["code"] == "AD-RUN-001"]
    assert "GuardManager check failed" in raised["observed"]


@pytest.mark.torch
def test_function_is_not_loaded_without_trust(function, command_line):
    done = command_line("run", "function.bin", "--inputs", "good.pt", "--json", cwd=function)
    report = json.loads(done.stdout)
    assert (report["runs"], done.returncode) == ([], 4)
    assert "--trust-pickle" in report["cannot_examine"]


OPERATOR = """
import torch

@torch.library.custom_op("lab::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    if x[0, 0] > 90:
        raise RuntimeError("operator kernel unsupported for this dtype float")
    return x * 2

@scale.register_fake
def _(x):
    return torch.empty_like(x)
"""
CALL = """
import sys, torch
sys.path.insert(0, "")
import operators

def scaled(x):
    return torch.ops.lab.scale(x) + 1

with torch._dynamo.config.patch(enable_aot_compile=True):
    made = torch.compile(scaled, fullgraph=True).aot_compile(((torch.randn(4, 8),), {}))
made.save_compiled_function("refusing.bin")
torch.save((torch.full((4, 8), 99.0),), "refused.pt")
"""


@pytest.mark.torch
def test_cause_that_the_words_of_an_exception_merely_suggest_is_perhaps_the_one(function, command_line):
    (function / "operators.py").write_text(OPERATOR)
    made = warm_python.python(CALL, cwd=function)
    assert made.returncode == 0, made.stderr
    words = ("run", "refusing.bin", "--trust-pickle", "--setup", "operators.py", "--inputs", "refused.pt", "--json")
    done = command_line(*words, cwd=function)
    report = json.loads(done.stdout)
    assert report["diagnoses"][0]["confidence"] < 0.6
    assert (report["verdict"], done.returncode) == ("unknown", 3)
