"""What is told of weights that a setup file is about to load."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.weights import describe_given_weights

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


def test_names_of_the_same_memory_are_told() -> None:
    import torch

    tied, other = torch.ones(3), torch.ones(3)
    found = describe_given_weights({"embed.weight": tied, "head.weight": tied, "bias": other})
    assert [fact["same_as"] for fact in found] == [["head.weight"], ["embed.weight"], []]


def test_weights_without_memory_are_not_the_same() -> None:
    import torch

    found = describe_given_weights(
        {"a": torch.ones(3, device="meta"), "b": torch.ones(3, device="meta"), "c": torch.ones(0)}
    )
    assert [fact["same_as"] for fact in found] == [[], [], []]
