"""Results of calls are looked at while their handles live. Needs torch, no package and no process."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.values import follow_values
from aotidoctor.worker.values.follow_values import PrototypeParameter

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]

CONVOLUTION = "aoti_torch_cpu_convolution"
GONE = 0xDEAD0000


class Call:
    """A call about to be made."""

    def __init__(self, symbol: str, *words: int) -> None:
        self.symbol = symbol
        self._words = words

    def word(self, index: int) -> int:
        return self._words[index]

    def integer(self, index: int) -> int:
        return self._words[index]


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """Tensors by handle; a handle that is gone must not be followed (in a real run that is a SIGSEGV)."""
    import torch

    tensors: dict[int, Any] = {0x1000: torch.ones(2), 0x2000: torch.zeros(3)}
    monkeypatch.setattr(follow_values, "tensor_of", lambda handle: tensors[handle])
    return tensors


@pytest.fixture
def followed(alive: dict[int, Any]) -> follow_values.ValueWatch:
    made = follow_values.ValueWatch(Path())
    parameter = PrototypeParameter(name="ret0", position=0, kind="handles", word=0, written=True)
    made._signatures = {CONVOLUTION: (parameter,)}
    return made


def shapes(done: follow_values.ValueWatch) -> list[list[list[int]]]:
    return [[item["shape"] for item in call["writes"]] for call in done.calls]


def test_a_result_that_is_given_back_at_once_is_looked_at_before(
    followed: follow_values.ValueWatch, alive: dict[int, Any]
) -> None:
    place = ctypes.c_uint64(0x1000)
    followed._before(Call(CONVOLUTION, ctypes.addressof(place)))
    followed._before(Call(follow_values.DELETES_TENSOR, 0x1000))
    del alive[0x1000]
    place.value = GONE
    followed._before(Call(follow_values.ALLOCATES, *[0] * 7))
    assert shapes(followed) == [[[2]]]
    assert followed.problems == []


def test_a_result_that_the_next_call_finds_is_looked_at_then(followed: follow_values.ValueWatch) -> None:
    first, second = ctypes.c_uint64(0x1000), ctypes.c_uint64(0x2000)
    followed._before(Call(CONVOLUTION, ctypes.addressof(first)))
    followed._before(Call(CONVOLUTION, ctypes.addressof(second)))
    followed._before(Call(follow_values.DELETES_TENSOR, 0x1000))
    assert shapes(followed) == [[[2]], [[3]]]


def test_the_stack_of_a_run_that_is_over_is_not_read(followed: follow_values.ValueWatch) -> None:
    place = ctypes.c_uint64(GONE)
    followed._before(Call(CONVOLUTION, ctypes.addressof(place)))
    followed.stop()
    assert shapes(followed) == [[]]
