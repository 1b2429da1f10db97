"""Leaves of the call spec with everything the wrapper tells about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.expr import Expr, Num, Sym
from aotidoctor.model.record import record
from aotidoctor.model.tree import MAPPINGS, Container, Tree, walk_call
from aotidoctor.readers.contract.body_records import Assertion, Body
from aotidoctor.readers.contract.checks_section import Checks, InputCheck
from aotidoctor.readers.contract.leaf_order import LeafOrder
from aotidoctor.readers.contract.symbols import SymbolTable, known


@record
class Sources:
    """Everything leaves are read from. ``mutated`` are names that a kernel takes as something to write to."""

    names: Sequence[str]
    checks: Checks
    body: Body
    symbols: SymbolTable
    mutated: frozenset[str]


def build_leaves(args: Container[int], kwargs: Container[int], order: LeafOrder, sources: Sources) -> list[LeafSpec]:
    """One ``LeafSpec`` per leaf of the call, in flattening order."""
    named = _bracket_names(kwargs, "KWARGS") if kwargs.type in MAPPINGS else []
    triton = {index: (name,) for index, name in (*_bracket_names(args, "ARGS"), *named)}
    leaves = []
    for path, index in walk_call(args, kwargs):
        names = (f"INPUT__{index}", *triton.get(index, ()))
        position, kind = order.input_of.get(index), order.kind(index)
        if position is None:
            leaves.append(LeafSpec(index=index, path=path, kind=kind, triton_names=names))
        else:
            leaves.append(tensor_leaf(position, sources, index=index, path=path, kind=kind, triton_names=names))
    return leaves


def _bracket_names(tree: Tree[int], name: str) -> list[tuple[int, str]]:
    """Triton's names of the leaves below ``tree``: ``ARGS[1][a]``."""
    if not isinstance(tree, Container):
        return [(tree.value, name)]
    keys = tree.keys or range(len(tree.children))
    return [
        pair for key, child in zip(keys, tree.children, strict=True) for pair in _bracket_names(child, f"{name}[{key}]")
    ]


def tensor_leaf(
    position: int, sources: Sources, *, index: int, path: str, kind: str, triton_names: tuple[str, ...]
) -> LeafSpec:
    """The leaf that is input ``position``."""
    name = sources.names[position]
    check = sources.checks.inputs.get(name, InputCheck())
    assertion = next((one for one in sources.body.assertions if one.name == name and one.operator == "input"), None)
    rank = _rank(check, assertion, sources)
    shown = rank if rank is not None else _dims_seen(name, check, sources)
    unpacked = sources.body.unpacked.get(name)
    exprs = [_size(name, dim, assertion, sources) for dim in range(shown)]
    steps = tuple(_stride(name, dim, check, assertion, sources) for dim in range(shown))
    return LeafSpec(
        index=index,
        path=path,
        kind=kind,
        input_index=position,
        generated_name=name,
        triton_names=triton_names,
        dtype=check.dtype or (assertion.dtype if assertion is not None else None),
        rank=rank,
        dims=tuple(_dim(dim, check, exprs[dim]) for dim in range(shown)) if shown or rank is not None else None,
        strides=tuple(step.over if isinstance(step, Num) else None for step in steps),
        device_type=check.device_type,
        used=_used(name, sources),
        source_line=assertion.line if assertion is not None else unpacked[1] if unpacked is not None else None,
        check_line=check.line,
        stride_exprs=steps,
        mutated=True if name in sources.mutated else None,
    )


def _rank(check: InputCheck, assertion: Assertion | None, sources: Sources) -> int | None:
    """The number of dims, None when the source does not determine it.

    The asserted shape is certain. Otherwise the comparisons show all dims if every dim has one: that holds when lower
    bounds were compiled in (each dynamic dim then has at least that) and when no size of the model is dynamic.
    """
    if assertion is not None:
        return len(assertion.sizes)
    if check.line is None:
        return None
    complete = sources.checks.has_lower_bounds or not sources.symbols.definitions
    return check.dims_seen if complete else None


def _dims_seen(name: str, check: InputCheck, sources: Sources) -> int:
    """Dims that anything mentions: a lower limit of the rank."""
    places = [*sources.symbols.sizes, *sources.symbols.strides]
    return max([check.dims_seen, *(dim + 1 for owner, dim in places if owner == name)])


def _size(name: str, dim: int, assertion: Assertion | None, sources: Sources) -> Expr | None:
    if assertion is not None:
        return known(sources.symbols.read(assertion.sizes[dim]))
    return sources.symbols.sizes.get((name, dim))


def _stride(name: str, dim: int, check: InputCheck, assertion: Assertion | None, sources: Sources) -> Expr | None:
    if dim in check.strides:
        return Num(check.strides[dim])
    if assertion is not None and dim < len(assertion.strides):
        return known(sources.symbols.read(assertion.strides[dim]))
    return sources.symbols.strides.get((name, dim))


def _dim(dim: int, check: InputCheck, expr: Expr | None) -> Dim:
    static = check.static.get(dim)
    if static is None and isinstance(expr, Num) and expr.under == 1:
        static = expr.over
    if static is not None:
        return Dim(static=static, expr=Num(static))
    return Dim(min=check.low.get(dim), max=check.high.get(dim), expr=expr)


def _used(name: str, sources: Sources) -> bool | None:
    """Whether any statement but a check mentions the input or a size that only the input defines."""
    body = sources.body
    if not body.unpacked:
        return None
    mine = {name} | {
        symbol for (owner, _), size in sources.symbols.sizes.items() if owner == name for symbol in size.symbols
    }
    mine |= {
        alias for alias, target in sources.symbols.aliases.items() if isinstance(target, Sym) and target.name in mine
    }
    return not body.used.isdisjoint(mine)


def infer_shared(leaves: Sequence[LeafSpec]) -> list[LeafSpec]:
    """Give dims without an expression the only symbol they can be.

    The wrapper names each new symbol where it first meets it. A dynamic dim that names none is therefore made of
    symbols that others named. Where exactly one of those has the very same bounds, the dim is that symbol.
    """
    bounds: dict[str, tuple[int | None, int | None]] = {}
    for leaf in leaves:
        for dim in leaf.dims or ():
            if isinstance(dim.expr, Sym):
                bounds.setdefault(dim.expr.name, (dim.min, dim.max))
    return [_with_shared(leaf, bounds) for leaf in leaves]


def _with_shared(leaf: LeafSpec, bounds: Mapping[str, tuple[int | None, int | None]]) -> LeafSpec:
    dims = leaf.dims or ()
    if all(dim.static is not None or dim.expr is not None for dim in dims):
        return leaf
    return replace(leaf, dims=tuple(_shared(dim, bounds) for dim in dims))


def _shared(dim: Dim, bounds: Mapping[str, tuple[int | None, int | None]]) -> Dim:
    if dim.static is not None or dim.expr is not None or dim.min is None:
        return dim
    fitting = [name for name, limits in bounds.items() if limits == (dim.min, dim.max)]
    if len(fitting) != 1:
        return dim
    return Dim(min=dim.min, max=dim.max, expr=Sym(fitting[0]))
