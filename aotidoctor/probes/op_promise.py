"""What was promised of an operator's result against what it gave: dtype, shape, strides, device, number of tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.answers.called import Tensor
from aotidoctor.model.case import Case
from aotidoctor.model.contract import CustomCall, PromisedResult
from aotidoctor.model.expr import Sym, evaluate, parse_expr
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.probes.results import inputs

# A size that the operator itself decides: nothing can be promised.
_UNBACKED = re.compile(r"\bu\d+\b")
Sizes = tuple[int | None, ...]


@record
class Promised:
    """A tensor, or what is promised of one; None is "not said". ``used`` tells whether compiled code reads it."""

    dtype: str | None
    shape: Sizes | None
    stride: Sizes | None
    device: str | None = None
    used: bool = True

    @property
    def complete(self) -> bool:
        """Whether all that compiled code relies on is said."""
        return not self.used or (self.dtype is not None and self.shape is not None and self.stride is not None)


UNKNOWN = Promised(dtype=None, shape=None, stride=None)


@record
class Difference:
    """``what`` differs: dtype, shape, stride, device or count."""

    what: str
    observed: str
    expected: str
    path: str


def compiled_promises(case: Case, plain: Outcome | None, call: CustomCall) -> list[Promised]:
    """What the compiled code relies on, with the sizes of this run put in."""
    sizes = symbol_values(case, plain)
    return [_compiled(result, sizes) for result in call.results]


def misfed(case: Case, plain: Outcome | None, call: CustomCall, given: Sequence[Promised]) -> bool:
    """Whether an argument is the result of another operator that broke its promise: then ours need not keep its own."""
    sizes = symbol_values(case, plain)
    promised = [UNKNOWN if one is None else _compiled(one, sizes) for one in call.arguments]
    return len(given) == len(promised) and difference(given, promised) is not None


def symbol_values(case: Case, plain: Outcome | None) -> Mapping[str, int]:
    """Symbols of the contract by the shapes of the inputs that the plain run saw."""
    given = {value.path: value.sizes for value in inputs(plain)} if plain is not None else {}
    found: dict[str, int] = {}
    for leaf in case.contract.leaves if case.contract is not None else ():
        for dim, size in zip(leaf.dims or (), given.get(leaf.path, ()), strict=False):
            if isinstance(dim.expr, Sym):
                found.setdefault(dim.expr.name, size)
    return found


def _compiled(result: PromisedResult, sizes: Mapping[str, int]) -> Promised:
    def value(text: str) -> int | None:
        return None if _UNBACKED.search(text) else evaluate(parse_expr(text), sizes)

    def values(texts: Sequence[str] | None) -> Sizes | None:
        return None if texts is None else tuple(map(value, texts))

    return Promised(dtype=result.dtype, shape=values(result.shape), stride=values(result.stride), used=result.used)


def tensors(found: Sequence[Tensor]) -> list[Promised]:
    """Tensors as the worker describes them."""
    return [
        Promised(dtype=item.dtype or None, shape=item.shape, stride=item.stride, device=item.device) for item in found
    ]


def difference(given: Sequence[Promised], promised: Sequence[Promised], *, strides: bool = True) -> Difference | None:
    """The first thing in which the results differ from what was promised; None when all that is said holds."""
    if len(given) != len(promised):
        return Difference(what="count", observed=f"{len(given)} tensors", expected=str(len(promised)), path="result")
    for at, (one, wanted) in enumerate(zip(given, promised, strict=True)):
        path = "result" if len(given) == 1 else f"result[{at}]"
        found = _difference(one, wanted, strides=strides) if wanted.used else None
        if found is not None:
            return Difference(what=found[0], observed=found[1], expected=found[2], path=path)
    return None


def _difference(one: Promised, wanted: Promised, *, strides: bool) -> tuple[str, str, str] | None:
    for what, observed, expected in (
        ("dtype", one.dtype, wanted.dtype),
        ("device", _type(one.device), _type(wanted.device)),
    ):
        if observed and expected and observed != expected:
            return what, observed, expected
    if not _fits(one.shape, wanted.shape):
        return "shape", _shown(one.shape), _shown(wanted.shape)
    if strides and not _strides_fit(one, wanted):
        return "stride", _shown(one.stride), _shown(wanted.stride)
    return None


def _fits(given: Sizes | None, wanted: Sizes | None) -> bool:
    if given is None or wanted is None:
        return True
    return len(given) == len(wanted) and all(b is None or a == b for a, b in zip(given, wanted, strict=True))


def _strides_fit(one: Promised, wanted: Promised) -> bool:
    """Strides of dims with one element mean nothing, and none do in an empty tensor."""
    if one.shape is None or one.stride is None or wanted.stride is None or 0 in one.shape:
        return True
    pairs = zip(one.shape, one.stride, wanted.stride, strict=False)
    return all(size == 1 or b is None or a == b for size, a, b in pairs)


def _type(device: str | None) -> str:
    return (device or "").partition(":")[0]


def _shown(sizes: Sizes | None) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in sizes or ()) + ")"
