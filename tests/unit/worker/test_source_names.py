"""What the model's own line calls a tensor that export lifted out of a closure or a global."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from aotidoctor.worker.verify.program_view import name_in_source

mean, var, state = torch.zeros(4), torch.ones(4), torch.zeros(4)
CACHE = {"k": torch.zeros(4)}


class Norm(torch.nn.Module):
    def forward(self, x):
        return functional.instance_norm(x, mean, running_var=var, use_input_stats=True)


class InPlace(torch.nn.Module):
    def forward(self, x):
        state.mul_(2)
        return x + state


class Augmented(torch.nn.Module):
    def forward(self, x):
        held = state
        held += x.sum()
        return x + held


class Element(torch.nn.Module):
    def forward(self, x):
        state[0] = x.sum()
        return x + state


class Nested(torch.nn.Module):
    def forward(self, x):
        CACHE["k"].copy_(x.sum())
        return x + CACHE["k"]


class Elsewhere(torch.nn.Module):
    """The stack that export keeps ends in forward."""

    def forward(self, x):
        return double(x)


def double(x):
    state.mul_(2)
    return x + state


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (Norm, ["mean", "var"]),
        (InPlace, ["state"]),
        (Augmented, ["held"]),
        (Element, ["state"]),
        (Nested, ["CACHE['k']"]),
        (Elsewhere, [None]),
    ],
)
def test_the_name_is_that_of_the_line(model, names):
    program = torch.export.export(model(), (torch.randn(2, 4, 3, 4),))
    constants = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "CONSTANT_TENSOR"]
    users = [next(node for node in program.graph.nodes if name in map(str, node.all_input_nodes)) for name in constants]
    assert [name_in_source(node, {name}) for node, name in zip(users, constants, strict=True)] == names


def test_without_a_line_there_is_no_name():
    program = torch.export.export(torch.nn.ReLU(), (torch.randn(2),))
    node = next(node for node in program.graph.nodes if node.op == "call_function")
    assert name_in_source(node, {"input"}) in (None, "input")
    node.meta.pop("stack_trace", None)
    assert name_in_source(node, {"input"}) is None
