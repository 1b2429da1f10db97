from __future__ import annotations

import pytest

from aotidoctor.commands.repro.attempts import treated_call
from aotidoctor.model.inputs import Container, InputSet, Leaf, TensorDesc

X = Leaf(value=TensorDesc(dtype="float32", shape=(2,), stride=(1,)))
OPTIONS = Container(type="dict", keys=("a", "b"), children=(X, X))
INPUTS = InputSet(
    path=None,
    format="pt",
    form="args",
    args=Container(type="tuple", children=(X, OPTIONS)),
    kwargs=Container(type="dict", children=()),
)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"op": "cast", "path": "args[0]", "dtype": "int64"}, "args[0].to(torch.int64), args[1], **kwargs"),
        ({"op": "contiguous", "path": "args[0]", "stride": None}, "args[0].contiguous(), args[1], **kwargs"),
        (
            {"op": "contiguous", "path": "args[1]['a']", "stride": [2]},
            "args[0], {'a': torch.empty_strided(args[1]['a'].shape, (2,), dtype=args[1]['a'].dtype)"
            ".copy_(args[1]['a']), 'b': args[1]['b']}, **kwargs",
        ),
        (
            {"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 1},
            "args[0].narrow(0, 0, 1).contiguous(), args[1], **kwargs",
        ),
        ({"op": "dense", "path": "args[0]", "quantized": True}, "args[0].dequantize(), args[1], **kwargs"),
        (
            {
                "op": "tree",
                "args": {"tuple": [{"leaf": "args[0]"}, {"dict": [["b", {"leaf": "args[1]['b']"}]]}]},
                "kwargs": {"dict": [["k", {"value": 3}]]},
            },
            "args[0], {'b': args[1]['b']}, **{'k': 3}",
        ),
    ],
)
def test_steps_as_arguments_of_a_call(step, text):
    assert treated_call(INPUTS, [step]) == text


@pytest.mark.parametrize("step", [{"op": "threads", "n": 1}, {"op": "cast", "path": "args[7]", "dtype": "int64"}])
def test_what_is_no_change_of_the_call_has_no_expression(step):
    assert treated_call(INPUTS, [step]) is None
