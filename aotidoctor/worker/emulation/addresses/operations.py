"""Operations on the values of a kernel's index arithmetic: sums, comparisons, choices, in the types of Triton."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from aotidoctor.worker.emulation.addresses.nodes import Grid, Node, Overflow, constant, opaque
from aotidoctor.worker.emulation.dtypes import INT32, NUMPY, ORDER


def _common(a: Node, b: Node) -> str:
    """The type of a result, as Triton promotes: a number of Python's gives way."""
    if a.weak != b.weak:
        strong, weak = (b, a) if a.weak else (a, b)
        if weak.dtype.startswith("fp") and not strong.dtype.startswith("fp"):
            return "fp32"
        if strong.dtype == "i1" and weak.dtype != "i1":
            return weak.dtype
        return strong.dtype
    return max(a.dtype, b.dtype, key=lambda one: ORDER.index(one) if one in ORDER else len(ORDER))


def aligned(data: Any, rank: int, wanted: int) -> Any:
    """``data`` with as many dims of the block as its partner has: missing ones come first, behind the programs."""
    if rank >= wanted:
        return data
    return data.reshape((data.shape[0],) + (1,) * (wanted - rank) + data.shape[1:])


def binary(name: str, a: Node, b: Node) -> Node:
    """``a + b`` and its like, and comparisons."""
    if min(a.rank, b.rank) < 0:
        return opaque(a.what if a.rank < 0 else b.what)
    if a.what == b.what == "constant" and (name in _FOLDED or _is_plain(name, a.value, b.value)):
        return constant((_PYTHON.get(name) or _COMPUTED[name])(a.value, b.value))
    compares = name in _COMPARES
    common = "fp32" if name == "/" and not _common(a, b).startswith("fp") else _common(a, b)
    if common not in NUMPY:
        return opaque(f"numbers of the type {common}")
    rank = max(a.rank, b.rank)
    made = Node(what=name, dtype="i1" if compares else common, rank=rank, parts=(a, b))
    made.weak = a.weak and b.weak

    def make(grid: Grid, parts: tuple[Any, ...]) -> Any:
        import numpy as np

        left, right = aligned(parts[0], a.rank, rank), aligned(parts[1], b.rank, rank)
        if name in ("+", "-", "*") and common == "i32":
            return _fitting(made, name, left, right)
        left, right = (one.astype(NUMPY[common], copy=False) for one in (left, right))
        with np.errstate(all="ignore"):
            return _COMPUTED[name](left, right)

    made.make = make
    return made


def _is_plain(name: str, a: float, b: float) -> bool:
    """Whether Python divides them as Triton does."""
    return name in _PYTHON and isinstance(a, int) and isinstance(b, int) and a >= 0 and b > 0


def _fitting(node: Node, name: str, left: Any, right: Any) -> Any:
    """In 32 bits where the result fits them. Raises ``Overflow``."""
    import numpy as np

    if node.interval({}) is not None:
        return _COMPUTED[name](left.astype(np.int32, copy=False), right.astype(np.int32, copy=False))
    wide = _COMPUTED[name](left.astype(np.int64), right.astype(np.int64))
    if wide.size and (wide.min() < INT32[0] or wide.max() > INT32[1]):
        raise Overflow
    return wide.astype(np.int32)


def function(name: str, *parts: Node, dtype: str | None = None, rank: int | None = None) -> Node:
    """``where``, ``minimum``, ``maximum``, ``abs``, ``not``, ``to``."""
    if any(part.rank < 0 for part in parts):
        return opaque(next(part.what for part in parts if part.rank < 0))
    made_rank = max(part.rank for part in parts) if rank is None else rank
    common = dtype or (_common(parts[-2], parts[-1]) if len(parts) > 1 else parts[0].dtype)
    if common not in NUMPY:
        return opaque(f"numbers of the type {common}")

    def make(grid: Grid, given: tuple[Any, ...]) -> Any:
        import numpy as np

        arrays = [aligned(one, part.rank, made_rank) for one, part in zip(given, parts, strict=True)]
        with np.errstate(all="ignore"):
            return _FUNCTIONS[name](*arrays).astype(NUMPY[common], copy=False)

    return Node(what=name, dtype=common, rank=made_rank, parts=parts, make=make)


def reshaped(node: Node, at: tuple[int | None, ...]) -> Node:
    """``x[:, None]``: ``at`` has 0 for a dim that is kept and None for a new one."""
    if node.rank < 0:
        return node

    def make(grid: Grid, given: tuple[Any, ...]) -> Any:
        kept: tuple[Any, ...] = (slice(None), *(None if one is None else slice(None) for one in at))
        return given[0][kept]

    return Node(what="reshape", dtype=node.dtype, rank=len(at), parts=(node,), size=node.size, make=make)


def _quotient(a: Any, b: Any) -> Any:
    """Cut towards zero."""
    import numpy as np

    if a.dtype.kind == "f":
        return np.trunc(a / b)
    signed = a.size and b.size and a.dtype.kind == "i" and (a.min() < 0 or b.min() < 0)
    return (a - np.fmod(a, b)) // b if signed else a // b


def _np(name: str) -> Callable[..., Any]:
    def apply(*arrays: Any) -> Any:
        import numpy as np

        return getattr(np, name)(*arrays)

    return apply


_COMPARES = ("<", "<=", ">", ">=", "==", "!=")
_COMPUTED: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": _quotient, "%": _np("fmod"), "/": operator.truediv,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
_PYTHON: Mapping[str, Callable[[Any, Any], Any]] = {"//": operator.floordiv, "%": operator.mod}
# Of constants these are computed at once.
_FOLDED = ("+", "-", "*", *_COMPARES)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "where": _np("where"), "minimum": _np("minimum"), "maximum": _np("maximum"), "abs": _np("abs"),
    "not": _np("logical_not"), "invert": _np("invert"), "to": lambda a: a, "floor": _np("floor"), "ceil": _np("ceil"),
}  # fmt: skip
