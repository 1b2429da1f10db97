"""What operators are given and what they make: memory that nothing has written, NaN of finite values."""

from __future__ import annotations

from typing import Any

from aotidoctor.worker.emulation.storage import Tensor
from aotidoctor.worker.emulation.variables import CannotError
from aotidoctor.worker.emulation.wrapper import Replay


def check_given(replay: Replay, function: str, given: list[Tensor], written: list[Tensor], line: int) -> None:
    """Operators look at all of their arguments. Raises ``CannotError`` where one is not known."""
    for tensor in given:
        if any(tensor is one for one in written):
            continue
        if not tensor.storage.known:
            raise CannotError(f"{tensor.name} is not known: something that was not executed may have written to it")
        count = tensor.has_unwritten()
        if count:
            replay.found.add(
                "uninitialized", kernel=function, wrapper_line=line, buffer=tensor.name, count=count, launch=None,
                allocation=tensor.storage.name, argument=tensor.name,
            )  # fmt: skip


def tell_nan(  # noqa: PLR0917
    replay: Replay, function: str, given: list[Tensor], written: list[Tensor], results: list[Any], line: int
) -> None:
    """NaN from values without any."""
    inputs = [one for one in given if not any(one is other for other in written)]
    outputs = [*written, *(one for one in results if isinstance(one, Tensor))]
    if all(map(_all_finite, inputs)):
        for tensor in outputs:
            count = _nans(tensor)
            if count:
                replay.found.add(
                    "nan", kernel=function, wrapper_line=line, buffer=tensor.name, count=count, launch=None
                )


def _all_finite(tensor: Tensor) -> bool:
    value = tensor.torch()
    return not value.is_floating_point() or bool(value.isfinite().all())


def _nans(tensor: Tensor) -> int:
    value = tensor.torch()
    return int(value.isnan().sum()) if value.is_floating_point() else 0
