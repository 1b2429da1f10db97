"""The launch grid of a Triton kernel as a number: its text in the wrapper, computed from the arguments of the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.model.contract import Contract, KernelBody, KernelCall
from aotidoctor.model.expr import Expr, evaluate, parse_expr, substitute


def grids_of(contract: Contract) -> Sequence[tuple[KernelCall, tuple[Expr, ...]]]:
    """Each launch with its grid in terms of the sizes of the inputs.

    Sizes are never negative, so that the division of C++ rounds like the one of Python.
    """
    bodies = {body.name: body for body in contract.bodies}
    found = []
    for call in contract.kernels:
        names = _arguments(call, bodies.get(call.name))
        grid = tuple(substitute(parse_expr(part.replace("/", "//")), names) for part in call.grid)
        if grid:
            found.append((call, grid))
    return found


def _arguments(call: KernelCall, body: KernelBody | None) -> Mapping[str, Expr]:
    if body is None or len(call.arguments) < len(body.parameters):
        return {}
    pairs = zip(body.parameters, call.arguments, strict=False)
    return {one.name: parse_expr(text) for one, text in pairs if not one.pointer}


def sizes_of(grid: Sequence[Expr], symbols: Mapping[str, int]) -> tuple[int | None, ...]:
    """The grid as numbers; None for a part that needs a symbol nobody knows."""
    return tuple(evaluate(part, symbols) for part in grid)
