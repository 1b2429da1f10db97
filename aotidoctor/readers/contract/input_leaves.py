"""Describe the leaves of the call spec: their order, their symbols, and the dtypes and dims of inputs.

The spec counts all leaves, the runtime takes tensors only, and only the generated names show which leaves are
tensors: ``argN_1`` was placeholder N of the exported graph, where parameters and buffers come first and then one
placeholder per leaf. So leaf = N - offset, with one unknown offset for all. It is at least the number of parameters
and buffers that are listed as constants (those that were inlined or not used are missing there), it must leave room
for the largest N, and it cannot exceed the smallest. Where that leaves one offset, the order is certain.

The wrapper names a symbol where it first meets it (``int64_t s17 = arg0_1_size[0];``), gives it further names
(``int64_t s77 = s17;``) and solves derived dims for it (``int64_t s40 = (1.0/8.0)*arg0_1_size_0;``). Everything is
expressed in the first name, so that two dims with the same expression are the same size.

Packages of torch 2.6 hold no input checks. A kernel still declares the dtype of a pointer: ``const float*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import ConstantSpec, Dim, LeafSpec, ModelContract, Reading
from aotidoctor.model.expr import Expr, Num, Opaque, Sym, linear, product_of, ratio, substitute, sum_of, whole
from aotidoctor.model.inputs import MAPPINGS, Container, Tree, walk_call
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import element_dtype
from aotidoctor.readers.contract.run_impl import Body
from aotidoctor.readers.contract.wrapper_declarations import Checks, InputCheck
from aotidoctor.readers.contract.wrapper_statements import Statement

# Which leaf of the call spec is which input.
_NAME = re.compile(r"arg(\d{1,9})_\d+$")


@record
class LeafOrder:
    """Order of the leaves: ``input_of`` maps leaf to input, by the best guess for leaves that are not ``certain``.

    ``readings`` are all that are possible, where there are several.
    """

    input_of: Mapping[int, int]
    certain: frozenset[int]
    problem: str | None = None
    readings: tuple[Reading, ...] = ()

    def kind(self, leaf: int) -> str:
        """The kind of a leaf: ``tensor``, ``constant``, or ``unknown`` where that is not certain."""
        if leaf not in self.certain:
            return "unknown"
        return "tensor" if leaf in self.input_of else "constant"


def order_leaves(
    names: Sequence[str], n_leaves: int, constants: Sequence[ConstantSpec], constant_leaves: frozenset[int] | None
) -> LeafOrder:
    """Match inputs called ``names`` with ``n_leaves`` leaves.

    ``constant_leaves`` are the leaves that an export of the same model is known to have baked in, None when unknown.
    """
    everything = frozenset(range(n_leaves))
    if len(names) == n_leaves:
        return LeafOrder(input_of={at: at for at in range(n_leaves)}, certain=everything)
    if constant_leaves is not None and n_leaves - len(constant_leaves) == len(names):
        tensors = sorted(everything - constant_leaves)
        return LeafOrder(input_of={leaf: at for at, leaf in enumerate(tensors)}, certain=everything)
    numbers = [int(found[1]) for name in names if (found := _NAME.match(name)) is not None]
    if not names:
        return LeafOrder(input_of={}, certain=everything)
    if len(numbers) != len(names) or len(names) > n_leaves:
        text = f"{n_leaves} leaves and {len(names)} inputs could not be matched by the generated names"
        return LeafOrder(input_of={}, certain=frozenset(), problem=text)
    # Parameters and buffers that are listed: each had a placeholder of its own.
    lifted = sum(constant.kind in ("parameter", "buffer") and not constant.from_folded for constant in constants)
    low = max(lifted, max(numbers) - (n_leaves - 1), 0)
    high = min(numbers)
    if low > high:
        text = f"the generated names do not fit {n_leaves} leaves"
        return LeafOrder(input_of={}, certain=frozenset(), problem=text)
    readings = [{number - offset: at for at, number in enumerate(numbers)} for offset in range(low, high + 1)]
    # All listed constants accounted for: nothing is missing. Otherwise a tensor as first argument is the usual case.
    best = readings[0] if low == lifted else readings[-1]
    certain = frozenset(leaf for leaf in range(n_leaves) if len({reading.get(leaf) for reading in readings}) == 1)
    if len(readings) == 1:
        return LeafOrder(input_of=best, certain=certain)
    problem = f"which of the {n_leaves} leaves are tensors is not certain: {len(readings)} readings fit the names"
    every = tuple(tuple(reading.get(leaf) for leaf in range(n_leaves)) for reading in readings)
    return LeafOrder(input_of=best, certain=certain, problem=problem, readings=every)


# Symbols shared between inputs.
_SIZE = re.compile(r"(\w+)_(size|stride)\[(\d{1,3})\]$")
_LONGEST = 1000
# Symbols of sizes; those of data-dependent sizes (u0) are defined by what a run gives.
_SYMBOL = re.compile(r"(?:s|ps)\d+$")
_ALIAS = re.compile(r"[a-z]+\d+$")


@record
class SymbolTable:
    """Canonical symbols with the text that defines them.

    ``sizes`` and ``strides`` map (input name, dim) to its size in terms of them, as far as the definitions give it.
    """

    definitions: Mapping[str, str]
    aliases: Mapping[str, Expr]
    sizes: Mapping[tuple[str, int], Expr]
    strides: Mapping[tuple[str, int], Expr]

    def read(self, text: str) -> Expr:
        """``text`` in terms of canonical symbols."""
        return substitute(parse_expr(text), self.aliases)


def read_symbols(body: Body) -> SymbolTable:
    """Collect the definitions of ``body``."""
    definitions: dict[str, str] = {}
    aliases: dict[str, Expr] = {}
    places: dict[str, tuple[str, str, int]] = {}
    tables: dict[str, dict[tuple[str, int], Expr]] = {"size": {}, "stride": {}}
    for name, text in body.definitions.items():
        place = _SIZE.match(text)
        if place is not None:
            where = (place[2], place[1], int(place[3]))
            if _ALIAS.match(name) is not None:
                definitions[name] = text
                tables[where[0]].setdefault(where[1:], Sym(name))
            else:
                places[name] = where
        elif _ALIAS.match(text) is not None and (text in definitions or text in aliases):
            aliases[name] = aliases.get(text, Sym(text))
        else:
            if _SYMBOL.match(name) is not None and isinstance(parse_expr(text), Opaque):
                body.losses.note("symbol", 0, f"{name} = {text}")
            # Computed from one size, which then is the inverse; or from other symbols.
            expr = substitute(parse_expr(text), aliases)
            source = next((symbol for symbol in expr.symbols if symbol in places), None)
            if source is not None:
                definitions[name] = text
                kind, argument, dim = places[source]
                size = solve_symbol(expr, source, Sym(name))
                if size is not None:
                    tables[kind].setdefault((argument, dim), size)
            elif expr.symbols and expr.symbols <= definitions.keys() and len(str(expr)) < _LONGEST:
                aliases[name] = expr
    return SymbolTable(definitions=definitions, aliases=aliases, sizes=tables["size"], strides=tables["stride"])


def solve_symbol(expr: Expr, symbol: str, value: Expr) -> Expr | None:
    """``symbol`` such that ``expr`` equals ``value``: ``s40 = n/8`` gives ``n = 8*s40``; None unless it is linear."""
    others = expr.symbols - {symbol}
    if others:
        rest = substitute(expr, {symbol: Num(0)})
        is_symbol = sum_of((expr, product_of((Num(-1), rest)))) == Sym(symbol)
        return sum_of((value, product_of((Num(-1), rest)))) if is_symbol else None
    line = linear(expr)
    if line is None or not line[0].over:
        return None
    slope = ratio(line[0].under, line[0].over)
    return sum_of((product_of((slope, value)), slope.times(line[1]).times(Num(-1))))


def known_expr(expr: Expr) -> Expr | None:
    """``expr``, or None where it was not understood."""
    return None if isinstance(expr, Opaque) else expr


# Leaves with everything that the wrapper says about them.
@record
class LeafSources:
    """Sources of the leaves. ``mutated`` are the inputs that a kernel may write to."""

    names: Sequence[str]
    checks: Checks
    body: Body
    symbols: SymbolTable
    mutated: frozenset[str]


def build_leaves(
    args: Container[int], kwargs: Container[int], order: LeafOrder, sources: LeafSources
) -> Iterator[LeafSpec]:
    """One ``LeafSpec`` per leaf of the call, in flattening order."""
    named = _bracket_names(kwargs, "KWARGS") if kwargs.type in MAPPINGS else []
    triton = {index: (name,) for index, name in (*_bracket_names(args, "ARGS"), *named)}
    for path, index in walk_call(args, kwargs):
        names = (f"INPUT__{index}", *triton.get(index, ()))
        position, kind = order.input_of.get(index), order.kind(index)
        if position is None:
            yield LeafSpec(index=index, path=path, kind=kind, triton_names=names)
        else:
            yield tensor_leaf(position, sources, index=index, path=path, kind=kind, triton_names=names)


def _bracket_names(tree: Tree[int], name: str) -> list[tuple[int, str]]:
    """Triton's names of the leaves below ``tree``: ``ARGS[1][a]``."""
    if not isinstance(tree, Container):
        return [(tree.value, name)]
    keys = tree.keys or range(len(tree.children))
    return [
        pair for key, child in zip(keys, tree.children, strict=True) for pair in _bracket_names(child, f"{name}[{key}]")
    ]


def tensor_leaf(
    position: int, sources: LeafSources, *, index: int, path: str, kind: str, triton_names: tuple[str, ...]
) -> LeafSpec:
    """The leaf that is input ``position``."""
    name = sources.names[position]
    check = sources.checks.inputs.get(name, InputCheck())
    assertion = next((one for one in sources.body.assertions if one.name == name and one.operator == "input"), None)
    # The asserted shape is certain. Otherwise the comparisons show all dims if every dim has one: that holds when lower
    # bounds were compiled in (each dynamic dim then has at least that) and when no size of the model is dynamic.
    complete = sources.checks.has_lower_bounds or not sources.symbols.definitions
    rank = check.dims_seen if check.line is not None and complete else None
    rank = count = len(assertion.sizes) if assertion is not None else rank
    if count is None:
        # A lower limit: the dims that anything mentions.
        places = [*sources.symbols.sizes, *sources.symbols.strides]
        count = max([check.dims_seen, *(dim + 1 for owner, dim in places if owner == name)])
    dims, steps = _dims_and_strides(name, count, check, assertion, sources.symbols)
    unpacked = sources.body.unpacked.get(name)
    return LeafSpec(
        index=index,
        path=path,
        kind=kind,
        input_index=position,
        generated_name=name,
        triton_names=triton_names,
        dtype=check.dtype or (assertion.dtype if assertion is not None else None),
        rank=rank,
        dims=dims if count or rank is not None else None,
        strides=tuple(step.over if isinstance(step, Num) else None for step in steps),
        device_type=check.device_type,
        used=_is_used(name, sources),
        source_line=assertion.line if assertion is not None else unpacked[1] if unpacked is not None else None,
        check_line=check.line,
        stride_exprs=steps,
        mutated=True if name in sources.mutated else None,
        alignment=sources.body.alignments.get(name),
    )


def _dims_and_strides(
    name: str, count: int, check: InputCheck, assertion: Statement | None, symbols: SymbolTable
) -> tuple[tuple[Dim, ...], tuple[Expr | None, ...]]:
    """The first ``count`` dims and strides: from the check, else the assertion, else the definitions of symbols."""
    dims, steps = [], []
    for at in range(count):
        expr, step = symbols.sizes.get((name, at)), symbols.strides.get((name, at))
        if assertion is not None:
            expr = known_expr(symbols.read(assertion.sizes[at]))
            step = known_expr(symbols.read(assertion.strides[at])) if at < len(assertion.strides) else step
        static = check.static.get(at, whole(expr))
        bounded = Dim(min=check.low.get(at), max=check.high.get(at), expr=expr)
        dims.append(bounded if static is None else Dim(static=static, expr=Num(static)))
        steps.append(Num(check.strides[at]) if at in check.strides else step)
    return tuple(dims), tuple(steps)


def _is_used(name: str, sources: LeafSources) -> bool | None:
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


def infer_shared(leaves: Sequence[LeafSpec]) -> Iterator[LeafSpec]:
    """Give dims without an expression the only symbol they can be.

    The wrapper names each new symbol where it first meets it. A dynamic dim that names none is therefore made of
    symbols that others named. Where exactly one of those has the very same bounds, the dim is that symbol.
    """
    bounds: dict[str, tuple[int | None, int | None]] = {}
    for leaf in leaves:
        for dim in leaf.dims or ():
            if isinstance(dim.expr, Sym):
                bounds.setdefault(dim.expr.name, (dim.min, dim.max))
    for leaf in leaves:
        dims = list(leaf.dims or ())
        for at, dim in enumerate(dims):
            unnamed = dim.static is None and dim.expr is None and dim.min is not None
            fitting = [name for name, limits in bounds.items() if unnamed and limits == (dim.min, dim.max)]
            if len(fitting) == 1:
                dims[at] = Dim(min=dim.min, max=dim.max, expr=Sym(fitting[0]))
        yield replace(leaf, dims=tuple(dims)) if dims else leaf


# Dtypes that no check states, from the kernels that take the inputs.
def is_described(leaf: LeafSpec) -> bool:
    """Whether the dtype and the number of dims are known."""
    return leaf.dtype is not None and leaf.rank is not None


def has_open_strides(leaf: LeafSpec) -> bool:
    """Whether there are strides of which no check says anything."""
    return leaf.rank is None or (
        leaf.rank > 0 and not any(step is not None for step in (*(leaf.strides or ()), *(leaf.stride_exprs or ())))
    )


def with_implied_dtypes(contract: ModelContract) -> ModelContract:
    """``contract`` with a dtype for each tensor that has none and that all of its kernels read as the same."""
    if all(leaf.dtype is not None for leaf in contract.tensor_leaves()):
        return contract
    read_as: dict[str, set[str]] = {}
    bodies = {body.name: body for body in contract.bodies}
    for call in contract.kernels:
        body = bodies.get(call.name)
        if body is not None and len(call.arguments) >= len(body.parameters):
            for parameter, argument in zip(body.parameters, call.arguments, strict=False):
                if parameter.pointer:
                    read_as.setdefault(argument, set()).add(element_dtype(parameter.type) or "")
    # Read as two types, or as one that is not known here: it stays open.
    certain = {name: kinds.pop() for name, kinds in read_as.items() if len(kinds) == 1 and "" not in kinds}
    leaves = (
        replace(leaf, dtype=leaf.dtype or certain.get(leaf.generated_name or ""))
        if leaf.input_index is not None
        else leaf
        for leaf in contract.leaves
    )
    return replace(contract, leaves=tuple(leaves))
