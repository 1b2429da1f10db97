"""What a package leaves open about its inputs, from the exported program that it was made of.

Packages of torch 2.6 hold no input checks at all, and before 2.13 none holds a size that follows from another one
(``seq + 1``). The program tells both. It is asked only where nothing that the package does tell contradicts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.contract import Contract, Dim, LeafSpec
from aotidoctor.model.expr import Expr, Num, Opaque, Sym, parse_expr, substitute
from aotidoctor.model.program import ProgramLeaf, ProgramTensor, SizeRange
from aotidoctor.readers.provenance.compare import compare

# Before the name of a size of the program that the package does not show under a name of its own.
OWN = "program_"


def complete(contract: Contract, facts: ExportedFacts) -> Contract:
    """``contract`` with what ``facts`` add to its tensors; ``completed`` names those leaves."""
    pairs = list(zip(contract.leaves, facts.leaves, strict=False))
    if not any(is_open(leaf) for leaf in contract.leaves) or compare(contract, facts).decisive:
        return contract
    if [one.path for one in contract.leaves] != [other.path for other in facts.leaves]:
        return contract
    names = _names(pairs, contract)
    leaves = tuple(_completed(one, other, names, facts.ranges) for one, other in pairs)
    changed = tuple(new.path for old, new in zip(contract.leaves, leaves, strict=True) if new != old)
    unsure = tuple(f"the rank of {path} is not certain" for path in changed)
    problems = tuple(text for text in contract.problems if not unsure or not text.startswith(unsure))
    return replace(contract, leaves=leaves, completed=changed, problems=problems)


def is_open(leaf: LeafSpec) -> bool:
    """Whether the package leaves dtype, rank or a size of this tensor open."""
    if leaf.kind != "tensor" or leaf.input_index is None:
        return False
    return leaf.dtype is None or leaf.has_open_sizes


def _names(pairs: list[tuple[LeafSpec, ProgramLeaf]], contract: Contract) -> Mapping[str, Expr]:
    """Each size of the program in terms of the package's, by the dims that both show as a plain name."""
    found: dict[str, Expr] = {}
    for one, other in pairs:
        shape = (other.tensor.shape if other.tensor is not None else None) or ()
        for dim, size in zip(one.dims or (), shape, strict=False):
            if isinstance(dim.expr, Sym) and isinstance(parse_expr(size), Sym):
                found.setdefault(size, dim.expr)
    taken = {symbol.name for symbol in contract.symbols}
    theirs = {name for _, other in pairs for size in _sizes(other.tensor) for name in parse_expr(size).symbols}
    return {name: found.get(name, Sym(OWN + name if name in taken else name)) for name in theirs}


def _sizes(tensor: ProgramTensor | None) -> tuple[str, ...]:
    return () if tensor is None else (*(tensor.shape or ()), *(tensor.stride or ()))


def _completed(
    leaf: LeafSpec, other: ProgramLeaf, names: Mapping[str, Expr], ranges: Mapping[str, SizeRange]
) -> LeafSpec:
    tensor = other.tensor
    if not is_open(leaf) or other.kind != "tensor" or tensor is None or tensor.shape is None:
        return leaf
    # Where the package has checks, bounds and strides that it does not compare are not compiled in.
    checked = leaf.check_line is not None or leaf.rank is not None
    known = leaf.dims or ()
    dims = [
        _dim(known[at] if at < len(known) else Dim(), size, names, {} if checked else ranges)
        for at, size in enumerate(tensor.shape)
    ]
    made = replace(leaf, dtype=leaf.dtype or tensor.dtype, rank=len(dims), dims=tuple(dims))
    return made if checked else _with_strides(made, tensor, names)


def _dim(dim: Dim, size: str, names: Mapping[str, Expr], ranges: Mapping[str, SizeRange]) -> Dim:
    if dim.static is not None:
        return dim
    expr = _read(size, names)
    if isinstance(expr, Num) and expr.under == 1:
        return Dim(static=expr.over, expr=expr) if dim.expr is None else dim
    bounds = ranges.get(size, SizeRange())
    return Dim(
        min=bounds.low if dim.min is None else dim.min,
        max=bounds.high if dim.max is None else dim.max,
        expr=dim.expr if dim.expr is not None else expr,
    )


def _with_strides(leaf: LeafSpec, tensor: ProgramTensor, names: Mapping[str, Expr]) -> LeafSpec:
    """The strides of the sample that the program was exported with, for which the code was compiled."""
    if tensor.stride is None or len(tensor.stride) != leaf.rank:
        return leaf
    exprs = tuple(_read(text, names) for text in tensor.stride)
    constant = tuple(expr.over if isinstance(expr, Num) and expr.under == 1 else None for expr in exprs)
    return replace(leaf, strides=constant, stride_exprs=exprs)


def _read(text: str, names: Mapping[str, Expr]) -> Expr | None:
    expr = parse_expr(text)
    return None if isinstance(expr, Opaque) else substitute(expr, names)
