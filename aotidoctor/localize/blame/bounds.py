"""Where a bound comes from: the dim that the checked index walks along."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.localize.blame.columns import Grid, UnknownError
from aotidoctor.localize.blame.computed import Read, Value, Variable, factor
from aotidoctor.localize.blame.flow import Check, Flow
from aotidoctor.localize.blame.memory import CallMemories
from aotidoctor.localize.blame.program import Program
from aotidoctor.model.expr import evaluate
from aotidoctor.model.record import record

_DEEPEST = 4
_SYMBOL = re.compile(r"[a-z]+\d+$")


@record
class Table:
    """A tensor by the user's name, with sizes and strides as numbers (None where they are not known)."""

    name: str
    shape: Sequence[int | None]
    stride: Sequence[int | None]


def number(value: Value, memories: CallMemories) -> int | None:
    """``value`` as a number, where it does not depend on loops or elements."""
    try:
        (found,) = Grid((), (value,), memories.given, memories).column(value)
    except (UnknownError, ValueError):
        return None
    return found


def origin(program: Program, at: int, flow: Flow, check: Check, memories: CallMemories) -> str | None:
    """``table.weight.shape[0]``, ``s77 = args[0].shape[0]``, or None."""
    bound = number(check.limit, memories)
    symbol = _symbol(program, at, check.limit)
    found: dict[str, None] = {}
    for access in flow.accesses:
        step = factor(access.at, check.value)
        table = table_of(program, at, access.parameter) if step is not None else None
        if table is None or step is None or bound is None:
            continue
        stride = number(step, memories)
        dims = [dim for dim, size in enumerate(table.shape) if size == bound and _fits(table.stride, dim, stride)]
        if len(dims) == 1:
            found[f"{table.name}.shape[{dims[0]}]"] = None
    if symbol is not None and (not found or symbol[1] in found):
        return f"{symbol[0]} = {symbol[1]}"
    return next(iter(found)) if len(found) == 1 else None


def _fits(strides: Sequence[int | None], dim: int, step: int | None) -> bool:
    stride = strides[dim] if dim < len(strides) else None
    return step is not None and stride == step


def _symbol(program: Program, at: int, limit: Value) -> tuple[str, str] | None:
    """``(s77, args[0].shape[0])`` of a bound that the kernel is given as a plain symbol."""
    if not isinstance(limit, Variable):
        return None
    pair = program.arguments(at).get(limit.name)
    if pair is None or _SYMBOL.match(pair[1]) is None:
        return None
    symbol = next((one for one in program.contract.symbols if one.name == pair[1]), None)
    for leaf in program.contract.leaves:
        for dim, size in enumerate(leaf.dims or ()):
            if symbol is not None and str(size.expr) == symbol.name:
                return symbol.name, f"{leaf.path}.shape[{dim}]"
    return None


def _copied(program: Program, at: int, parameter: str) -> str | None:
    """The parameter that the kernel copies to ``parameter``, each element to the same offset: both have one shape."""
    flow = program.flow(program.call(at).name)
    for store in flow.stores if flow is not None else ():
        if store.parameter == parameter and isinstance(store.value, Read) and store.value.at == store.at:
            return store.value.parameter
    return None


def table_of(program: Program, at: int, parameter: str, depth: int = 0) -> Table | None:
    """The tensor that the call at ``at`` hands to its kernel as ``parameter``; None where it is not known."""
    pair = program.arguments(at).get(parameter)
    if pair is None or depth > _DEEPEST or program.shown_otherwise(pair[1]):
        return None
    copied = _copied(program, at, parameter) if not pair[0].const else None
    if copied is not None:
        return table_of(program, at, copied, depth + 1)
    name = program.root(pair[1])
    writer = program.writer(name, at)
    if writer is not None:
        same = [key for key, (one, text) in program.arguments(writer).items() if one.pointer and text == pair[1]]
        return table_of(program, writer, same[0], depth + 1) if len(same) == 1 else None
    constant = program.constants.get(name)
    if constant is not None:
        return Table(name=constant.fqn, shape=constant.shape or (), stride=constant.stride or ())
    leaf = program.leaves.get(name)
    if leaf is None or leaf.dims is None:
        return None
    sizes = [dim.size(program.sizes) for dim in leaf.dims]
    strides: list[int | None] = list(leaf.strides or ())
    exprs = leaf.stride_exprs or ()
    for dim, expr in enumerate(exprs):
        if expr is not None and dim < len(strides) and strides[dim] is None:
            strides[dim] = evaluate(expr, program.sizes)
    return Table(name=leaf.path, shape=sizes, stride=strides)
