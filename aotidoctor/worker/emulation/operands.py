"""What operators are given and what they make: memory that nothing has written, NaN of finite values."""

from __future__ import annotations

from aotidoctor.worker.emulation.storage import Tensor
from aotidoctor.worker.emulation.variables import CannotError
from aotidoctor.worker.emulation.wrapper import Replay


def check_given(replay: Replay, function: str, given: list[Tensor], line: int) -> None:
    """Operators look at all that they are given to read. Raises ``CannotError`` where some of it is not known."""
    for tensor in given:
        if not tensor.storage.known:
            raise CannotError(f"{tensor.name} is not known: something that was not executed may have written to it")
        count = tensor.has_unwritten()
        if count:
            replay.found.add(
                "uninitialized", kernel=function, wrapper_line=line, buffer=tensor.name, count=count, launch=None,
                allocation=tensor.storage.name, argument=tensor.name,
            )  # fmt: skip


def tell_nan(replay: Replay, function: str, given: list[Tensor], made: list[Tensor], line: int) -> None:
    """NaN from values without any."""
    if not all(map(_all_finite, given)):
        return
    for tensor in made:
        count = _nans(tensor)
        if count:
            replay.found.add("nan", kernel=function, wrapper_line=line, buffer=tensor.name, count=count, launch=None)


def _all_finite(tensor: Tensor) -> bool:
    value = tensor.torch()
    return not value.is_floating_point() or bool(value.isfinite().all())


def _nans(tensor: Tensor) -> int:
    value = tensor.torch()
    return int(value.isnan().sum()) if value.is_floating_point() else 0
