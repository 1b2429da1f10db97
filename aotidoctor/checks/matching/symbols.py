"""Symbolic sizes solved over all inputs: what does each dim say that a shared symbol is?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aotidoctor.checks.matching.pairs import TensorPair
from aotidoctor.model.expr import Expr, evaluate, solve
from aotidoctor.model.record import record


@record
class Reading:
    """Dim ``dim`` of ``pair`` has ``size`` and is compiled as ``expr``; ``value`` is what its one symbol then is.

    ``value`` is None when the size does not solve (``step`` and ``remainder`` say why) or several symbols are involved.
    """

    pair: TensorPair
    dim: int
    size: int
    expr: Expr
    symbol: str | None
    value: int | None
    step: int | None = None
    remainder: int | None = None


def readings(pairs: Iterable[TensorPair]) -> Iterator[Reading]:
    """One reading per dynamic dim that is compiled in terms of symbols, in call order."""
    for pair in pairs:
        for at, (dim, size) in enumerate(zip(pair.spec.dims or (), pair.tensor.shape, strict=False)):
            if dim.static is None and dim.expr is not None:
                yield _reading(pair, at, size, dim.expr)


def _reading(pair: TensorPair, dim: int, size: int, expr: Expr) -> Reading:
    names = sorted(expr.symbols)
    if len(names) != 1:
        return Reading(pair=pair, dim=dim, size=size, expr=expr, symbol=None, value=None)
    solved = solve(expr, size)
    if solved is not None:
        return Reading(pair=pair, dim=dim, size=size, expr=expr, symbol=names[0], value=solved[1])
    step, remainder = _remainder(expr, names[0], size)
    return Reading(
        pair=pair, dim=dim, size=size, expr=expr, symbol=names[0], value=None, step=step, remainder=remainder
    )


def _remainder(expr: Expr, symbol: str, size: int) -> tuple[int | None, int | None]:
    """For a linear ``a*s + b``: ``a`` and what is left of ``size - b``."""
    at = [evaluate(expr, {symbol: value}) for value in (0, 1, 2)]
    if at[0] is None or at[1] is None or at[2] is None or at[2] - at[1] != at[1] - at[0] or at[1] == at[0]:
        return None, None
    step = abs(at[1] - at[0])
    return step, (size - at[0]) % step


def agreed_values(found: Iterable[Reading]) -> dict[str, int]:
    """The value of each symbol: the one that most dims say, the first one where they are even."""
    votes: dict[str, dict[int, int]] = {}
    for reading in found:
        if reading.symbol is not None and reading.value is not None:
            count = votes.setdefault(reading.symbol, {})
            count[reading.value] = count.get(reading.value, 0) + 1
    return {symbol: max(count, key=lambda value: count[value]) for symbol, count in votes.items()}
