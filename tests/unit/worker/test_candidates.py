"""Which node of the reference has the values of a buffer."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.values.match_values import Candidates, ProgramValue

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_buffer_agrees_with_a_node_within_rounding(dtype: str) -> None:
    import torch

    torch.manual_seed(0)
    value = torch.randn(100, dtype=getattr(torch, dtype))
    candidates = Candidates()
    candidates.add([ProgramValue(name="mul", target="aten.mul", where=None, value=value, marks=(0.0, 0.0, 0.0))])
    assert candidates.closest(value * (1 + 1e-6))["agrees"] is True
    assert candidates.closest(value + 0.1)["agrees"] is False


def test_integers_must_be_equal() -> None:
    import torch

    value = torch.arange(100)
    candidates = Candidates()
    candidates.add([ProgramValue(name="add", target="aten.add", where=None, value=value, marks=(0.0, 0.0, 0.0))])
    assert candidates.closest(value)["agrees"] is True
    assert candidates.closest(value + 1)["agrees"] is False
