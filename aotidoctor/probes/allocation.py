"""Which sizes of the inputs an allocation that failed grew from, where contract and message tell it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from aotidoctor.model.case import Case
from aotidoctor.model.contract import OutputSpec
from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.expr import Expr, Sym, evaluate, parse_expr

# A size of one is in every number of bytes.
LEAST_SIZE = 2


def sizes_behind(case: Case, facts: Mapping[str, FactValue]) -> tuple[str, ...]:
    """``args[0].shape[0]`` and the like; empty where it cannot be told.

    ``facts`` are those of the message: ``sizes`` of a tensor, or ``bytes`` that were asked for.
    """
    places = _places(case)
    env = {symbol: size for symbol, (_, size) in places.items()}
    symbols = _of_sizes(case, facts.get("sizes"), env) or _of_bytes(case, facts.get("bytes"), env)
    return tuple(places[symbol][0] for symbol in places if symbol in symbols)


def _places(case: Case) -> dict[str, tuple[str, int]]:
    """Symbol to the first dim that shows it, and its size in these inputs."""
    given = case.tensors
    found: dict[str, tuple[str, int]] = {}
    for leaf in case.contract.tensor_leaves() if case.contract is not None else ():
        tensor = given.get(leaf.path)
        if tensor is None or len(tensor.shape) != len(leaf.dims or ()):
            continue
        for at, (dim, size) in enumerate(zip(leaf.dims or (), tensor.shape, strict=True)):
            if isinstance(dim.expr, Sym) and size >= LEAST_SIZE:
                found.setdefault(dim.expr.name, (f"{leaf.path}.shape[{at}]", size))
    return found


def _of_sizes(case: Case, text: FactValue, env: Mapping[str, int]) -> frozenset[str]:
    if not isinstance(text, str):
        return frozenset()
    sizes = [int(size) for size in re.findall(r"\d+", text)]
    for output in _outputs(case):
        shape = _shape(output)
        if [evaluate(size, env) for size in shape] == sizes:
            return frozenset().union(*(size.symbols for size in shape))
    return frozenset(symbol for symbol, size in env.items() if size in sizes)


def _of_bytes(case: Case, text: FactValue, env: Mapping[str, int]) -> frozenset[str]:
    if not isinstance(text, str | int) or not str(text).isdigit():
        return frozenset()
    wanted = int(text)
    for output in _outputs(case):
        shape = _shape(output)
        sizes = [evaluate(size, env) for size in shape]
        known = [size for size in sizes if size is not None]
        if len(known) == len(sizes) and math.prod(known) * ITEMSIZE.get(output.dtype or "", 0) == wanted:
            return frozenset().union(*(size.symbols for size in shape))
    # With one size that can change there is nothing else to grow from.
    return frozenset(env) if len(env) == 1 and all(wanted % size == 0 for size in env.values()) else frozenset()


def _outputs(case: Case) -> tuple[OutputSpec, ...]:
    return case.contract.outputs if case.contract is not None else ()


def _shape(output: OutputSpec) -> list[Expr]:
    return [parse_expr(size) for size in output.shape or ()]
