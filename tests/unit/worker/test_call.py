"""The call: what a model wrote to its inputs is taken back."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from aotidoctor.worker.call import ModelCall  # noqa: E402


@pytest.mark.parametrize(
    "view",
    [
        lambda memory: memory,
        lambda memory: memory[:1].expand(3, 4),
        lambda memory: memory[0, 0].expand(2, 5),
        lambda memory: memory.t()[::2],
        lambda memory: memory.as_strided((4, 2), (1, 1)),
    ],
)
def test_inputs_are_as_they_were_whatever_their_strides(view):
    memory = torch.arange(12.0).reshape(3, 4)
    call = ModelCall(args=(view(memory),), kwargs={"ids": torch.tensor([1, 2])})
    saved, before = call.copy(), memory.clone()
    memory.add_(1)
    call.restore(saved)
    assert torch.equal(call.args[0], view(before))
