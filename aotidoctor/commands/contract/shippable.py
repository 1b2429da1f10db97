"""Read the contract of a package as rows that every language can write, and generate fast checks of a call.

Sizes are written in terms of symbols, as text that is valid in Python and in C++: a number is a pair of texts,
numerator and denominator, integers only, so that both languages compute the same. ``_floor``, ``_cut``, ``_mod``,
``_max`` and ``_min`` are functions of the written code.

The fast check is straight code for one package, a few comparisons per tensor. It answers True for an ordinary call, and
False (or raises) for all others, harmless ones included: the slower validator judges those. It may only be too strict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aotidoctor.model.case import Options
from aotidoctor.model.contract import LeafSpec, ModelContract
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.expr import Expr, ExprFunction, Num, Product, Sum, Sym, linear
from aotidoctor.model.inputs import Container, Leaf, Tree
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.triage import open_case


@record
class ShippableContract:
    """The contract to write: ``symbols`` by first appearance, ``baked`` values by path.

    ``unstated`` lists what the package does not state.
    """

    source: str
    sha256: str | None
    contract: ModelContract
    symbols: tuple[str, ...]
    baked: Mapping[str, str]
    unstated: tuple[str, ...]

    def arguments(self) -> tuple[Container[int], Container[int]]:
        """The call spec: positional arguments and keyword arguments. Raises CannotExamineError if there is none."""
        if self.contract.args is None or self.contract.kwargs is None:
            raise CannotExamineError(f"{self.source}: it does not contain a call spec")
        return self.contract.args, self.contract.kwargs


def read_contract(
    path: str, *, inputs: str | None, reference: str | None, model_name: str | None, environ: Mapping[str, str]
) -> ShippableContract:
    """Read the contract of a package.

    Raises:
        CannotExamineError: there is no package, or it does not contain its contract.
    """
    options = Options(model_name=model_name, reference=reference)
    case, unread = open_case.open_case(path, inputs, options, environ)
    advice = "--inputs FILE with a call that works, or --reference exported.pt2, resolves this"
    open_case.refuse_damaged(case.artifact, executed=False)
    contract = open_case.require_contract(case, unread, advice)
    sizes = [dim.expr for leaf in contract.leaves for dim in leaf.dims or () if dim.static is None and dim.expr]
    return ShippableContract(
        source=Path(path).name,
        sha256=case.artifact.sha256,
        contract=contract,
        symbols=tuple(dict.fromkeys(name for expr in sizes for name in sorted(expr.symbols))),
        baked=case.reference.constant_inputs if case.reference is not None else {},
        unstated=(*_not_comparable(contract), *(f"{item.name}: {item.reason}" for item in unread)),
    )


def _not_comparable(contract: ModelContract) -> list[str]:
    """One line for each property that cannot be compared."""
    found = []
    for leaf in contract.leaves:
        if leaf.kind == "unknown":
            found.append(f"{leaf.path}: whether it is a tensor")
        if leaf.input_index is None or leaf.used is False:
            continue
        dims, known, exprs = leaf.dims or (), leaf.strides, leaf.stride_exprs
        unknown = exprs is None or len(exprs) != len(known or ())
        steps = [at for at, step in enumerate(known or ()) if step is None and (unknown or (exprs or ())[at] is None)]
        missing = [
            *(["dtype"] if leaf.dtype is None else []),
            *(["dims"] if leaf.rank is None else [f"size of dim {at}" for at, dim in enumerate(dims) if dim.is_open]),
            *(["strides"] if leaf.rank and known is None else [f"stride of dim {at}" for at in steps]),
            *(["device"] if leaf.device_type is None else []),
        ]
        found += [f"{leaf.path}: its {what}" for what in missing]
    found += [f"{item.count} statements of the wrapper (first: {item.example})" for item in contract.unread]
    return found


# Sizes as text.
Ratio = tuple[str, int]


def size_text(expr: Expr, symbols: Mapping[str, str]) -> str | None:
    """The value of ``expr`` as code, cut to an integer; None if it cannot be written with integers.

    ``symbols`` maps the name of each symbol to its name in the code.
    """
    ratio = _ratio(expr, symbols)
    if ratio is None:
        return None
    return ratio[0] if ratio[1] == 1 else f"_cut({ratio[0]}, {ratio[1]})"


def root_of(expr: Expr) -> tuple[int, int, int, int] | None:
    """Slope and constant of a straight line in one symbol, each as numerator and denominator; None for others."""
    line = linear(expr) if len(expr.symbols) == 1 else None
    if line is None or not line[0].over:
        return None
    slope, constant = line
    return slope.over, slope.under, constant.over, constant.under


def _ratio(expr: Expr, symbols: Mapping[str, str]) -> Ratio | None:
    match expr:
        case Num(over=over, under=under):
            return f"({over})" if over < 0 else str(over), under
        case Sym(name=name):
            return (symbols[name], 1) if name in symbols else None
        case Sum() | Product() | ExprFunction():
            parts = [_ratio(part, symbols) for part in expr.parts()]
            known = [part for part in parts if part is not None]
            return _joined(expr, known) if len(known) == len(parts) else None
        case _:
            return None


def _joined(expr: Sum | Product | ExprFunction, parts: list[Ratio]) -> Ratio | None:
    under = 1
    for _, one in parts:
        under *= one
    match expr:
        case Product():
            return "(" + " * ".join(text for text, _ in parts) + ")", under
        case Sum():
            return "(" + " + ".join(_widened(parts, under)) + ")", under
        case ExprFunction(name="max" | "min" as name):
            return f"_{name}({', '.join(_widened(parts, under))})", under
        case ExprFunction(name="floor"):
            return f"_floor({parts[0][0]}, {under})", 1
        case ExprFunction(name="ceil"):
            return f"(-_floor(-{parts[0][0]}, {under}))", 1
        case ExprFunction(name="trunc"):
            return f"_cut({parts[0][0]}, {under})", 1
        case ExprFunction(name="floordiv" | "mod" as name):
            over, below = _widened(parts, under)
            if name == "floordiv":
                return f"_floor({over}, {below})", 1
            return f"_mod({over}, {below})", under
        case _:
            return None


def _widened(parts: list[Ratio], under: int) -> list[str]:
    """The numerators over the common denominator ``under``."""
    return [text if one == under else f"({text} * {under // one})" for text, one in parts]


# Straight code that accepts ordinary calls.
_DEVICES = {"cpu": "is_cpu", "cuda": "is_cuda", "xpu": "is_xpu", "mps": "is_mps"}
_TYPES = ("tuple", "list", "dict")


class _NotPlainError(Exception):
    """The contract has something that straight code cannot check."""


@dataclass(slots=True)
class _Writer:
    """The lines of one function; ``bound`` maps a symbol to its local; ``later`` are comparisons still to write."""

    flavour: str
    baked: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    later: list[tuple[str, Expr]] = field(default_factory=list)
    taken: int = 0

    def fresh(self) -> str:
        """The name of a new local."""
        self.taken += 1
        return f"x{self.taken}"

    def unless(self, condition: str) -> None:
        """Write a line that returns False unless ``condition`` holds."""
        self.lines.append(f"    if not ({condition}): return False")


def needed_alignment(leaf: LeafSpec) -> int | None:
    """The asserted alignment of a leaf; None on a CPU, which reads at any address."""
    return None if leaf.device_type == "cpu" else leaf.alignment


def fast_check(wanted: ShippableContract, flavour: str) -> list[str]:
    """Write the lines of ``_fast_torch`` or ``_fast_numpy``."""
    writer = _Writer(flavour=flavour, baked=wanted.baked)
    try:
        _fast_call(writer, wanted.contract)
        # Sizes and strides that follow from the symbols, if all of those are bound.
        for name, expr in writer.later:
            text = size_text(expr, writer.bound)
            if text is not None:
                writer.unless(f"{name} == {text}")
    except _NotPlainError:
        writer.lines = ["    return False"]
    else:
        writer.lines.append("    return True")
    return [f"def _fast_{flavour}(args, kwargs):", *writer.lines]


def _fast_call(writer: _Writer, contract: ModelContract) -> None:
    args, kwargs = contract.args, contract.kwargs
    if args is None or kwargs is None:
        raise _NotPlainError
    writer.unless(
        f"type(args) in (tuple, list) and len(args) == {len(args.children)} and len(kwargs) == {len(kwargs.keys)}"
    )
    for index, child in enumerate(args.children):
        _fast_tree(writer, contract.leaves, child, f"args[{index}]")
    for key, child in zip(kwargs.keys, kwargs.children, strict=True):
        _fast_tree(writer, contract.leaves, child, f"kwargs[{key!r}]")


def _fast_tree(writer: _Writer, leaves: Sequence[LeafSpec], tree: Tree[int], source: str) -> None:
    name = writer.fresh()
    writer.lines.append(f"    {name} = {source}")
    match tree:
        case Leaf(value=index) if leaves[index].input_index is not None:
            _fast_tensor(writer, leaves[index], name)
        case Leaf(value=index):
            leaf = leaves[index]
            baked = writer.baked.get(leaf.path)
            if baked is not None:
                writer.unless(f"_plain({name}) == {baked!r}")
            writer.unless(f"{name} is None or type({name}) in (bool, int, float, str)")
        case Container(type=kind, children=children, keys=keys) if kind in _TYPES:
            writer.unless(f"type({name}) is {kind} and len({name}) == {len(children)}")
            if kind == "dict" and keys:
                writer.unless(f"[*{name}] == {list(keys)!r}")
            for index, child in enumerate(children):
                _fast_tree(writer, leaves, child, f"{name}[{keys[index] if kind == 'dict' else index!r}]")
        case _:
            raise _NotPlainError


def _fast_tensor(writer: _Writer, leaf: LeafSpec, name: str) -> None:
    dtype = leaf.dtype
    if dtype is not None:
        writer.unless(f"_NAMES[{name}.dtype] == {dtype!r}")
    if writer.flavour == "torch":
        device = leaf.device_type
        known = _DEVICES.get(device or "")
        if device is not None:
            writer.unless(f"{name}.{known}" if known else f"{name}.device.type == {device!r}")
        writer.unless(
            f"not {name}.is_neg()" + (f" and not {name}.is_conj()" if "complex" in (dtype or "complex") else "")
        )
    elif dtype is None:
        raise _NotPlainError
    _fast_shape(writer, leaf, name)
    alignment = needed_alignment(leaf)
    if alignment is not None and writer.flavour == "torch":
        writer.unless(f"{name}.storage_offset() * {name}.element_size() % {alignment} == 0")
    # For a layout that is not strided, torch raises here.
    _fast_strides(writer, leaf, f"{name}.stride()" if writer.flavour == "torch" else f"{name}.strides")


def _fast_shape(writer: _Writer, leaf: LeafSpec, name: str) -> None:
    dims = leaf.dims
    if dims is None or leaf.rank != len(dims):
        if leaf.rank is not None:
            writer.unless(f"len({name}.shape) == {leaf.rank}")
        if dims:
            raise _NotPlainError
        return
    if all(dim.static is not None for dim in dims):
        writer.unless(f"{name}.shape == {tuple(dim.static for dim in dims)!r}")
        return
    sizes = [writer.fresh() for _ in dims]
    writer.lines.append(f"    {', '.join(sizes)}, = {name}.shape")
    for size, dim in zip(sizes, dims, strict=True):
        if dim.static is not None:
            writer.unless(f"{size} == {dim.static}")
        elif dim.expr is not None:
            _dynamic(writer, size, dim.expr)


def _dynamic(writer: _Writer, size: str, expr: Expr) -> None:
    """Bind the symbol to its value by the size, or compare the size with bound symbols."""
    names = sorted(expr.symbols)
    root = root_of(expr)
    if len(names) != 1 or names[0] in writer.bound or root is None:
        writer.later.append((size, expr))
        return
    if root == (1, 1, 0, 1):
        writer.bound[names[0]] = size
        return
    symbol, rest = writer.fresh(), writer.fresh()
    over, under, constant, parts = root
    writer.lines.append(f"    {symbol}, {rest} = divmod(({size} * {parts} - {constant}) * {under}, {over * parts})")
    writer.unless(f"{rest} == 0")
    writer.bound[names[0]] = symbol


def _fast_strides(writer: _Writer, leaf: LeafSpec, source: str) -> None:
    strides, exprs = leaf.strides, leaf.stride_exprs
    width = 1 if writer.flavour == "torch" else ITEMSIZE[leaf.dtype or "float32"]
    if strides and None not in strides:
        writer.unless(f"{source} == {tuple((step or 0) * width for step in strides)!r}")
        return
    steps = [writer.fresh() for _ in strides or ()]
    writer.lines.append(f"    {''.join(f'{step}, ' for step in steps)}= {source}" if steps else f"    {source}")
    if not exprs or len(exprs) != len(steps):
        exprs = (None,) * len(steps)
    for name, step, expr in zip(steps, strides or (), exprs, strict=True):
        if step is not None:
            writer.unless(f"{name} == {step * width}")
        elif expr is not None:
            scaled = name
            if width != 1:
                scaled, rest = writer.fresh(), writer.fresh()
                writer.lines.append(f"    {scaled}, {rest} = divmod({name}, {width})")
                writer.unless(f"{rest} == 0")
            writer.later.append((scaled, expr))
