"""Straight code that sees whether a call is right: as few and as cheap questions as possible, made for one package.

It answers True for a call without any peculiarity, and False (or raises) for all others, harmless ones included: those
are judged by the slower code. So it may only ever be too strict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aotidoctor.commands.contract.expressions import root_of, size_text
from aotidoctor.commands.contract.read import Shippable
from aotidoctor.model.contract import Contract, LeafSpec
from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.expr import Expr
from aotidoctor.model.tree import Container, Leaf, Tree

_DEVICES = {"cpu": "is_cpu", "cuda": "is_cuda", "xpu": "is_xpu", "mps": "is_mps"}
_TYPES = ("tuple", "list", "dict")


class _NotPlainError(Exception):
    """The contract has something that straight code cannot see."""


@dataclass(slots=True)
class _Writer:
    """The lines of one function; ``bound`` maps a symbol to the local that holds it, ``later`` are comparisons."""

    flavour: str
    baked: Mapping[str, str]
    lines: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    later: list[tuple[str, Expr]] = field(default_factory=list)
    taken: int = 0

    def fresh(self) -> str:
        """A new local."""
        self.taken += 1
        return f"x{self.taken}"

    def unless(self, condition: str) -> None:
        """Give up unless ``condition`` holds."""
        self.lines.append(f"    if not ({condition}): return False")


def fast(wanted: Shippable, flavour: str) -> list[str]:
    """The lines of ``_fast_torch`` or ``_fast_numpy``."""
    writer = _Writer(flavour=flavour, baked=wanted.baked)
    try:
        _call(writer, wanted.contract)
        _agreements(writer)
    except _NotPlainError:
        writer.lines = ["    return False"]
    else:
        writer.lines.append("    return True")
    return [f"def _fast_{flavour}(args, kwargs):", *writer.lines]


def _call(writer: _Writer, contract: Contract) -> None:
    args, kwargs = contract.args, contract.kwargs
    if args is None or kwargs is None:
        raise _NotPlainError
    writer.unless(
        f"type(args) in (tuple, list) and len(args) == {len(args.children)} and len(kwargs) == {len(kwargs.keys)}"
    )
    for index, child in enumerate(args.children):
        _tree(writer, contract.leaves, child, f"args[{index}]")
    for key, child in zip(kwargs.keys, kwargs.children, strict=True):
        _tree(writer, contract.leaves, child, f"kwargs[{key!r}]")


def _tree(writer: _Writer, leaves: Sequence[LeafSpec], tree: Tree[int], source: str) -> None:
    name = writer.fresh()
    writer.lines.append(f"    {name} = {source}")
    match tree:
        case Leaf(value=index) if leaves[index].input_index is not None:
            _tensor(writer, leaves[index], name)
        case Leaf(value=index):
            _constant(writer, leaves[index], name)
        case Container(type=kind, children=children, keys=keys) if kind in _TYPES:
            writer.unless(f"type({name}) is {kind} and len({name}) == {len(children)}")
            if kind == "dict" and keys:
                writer.unless(f"[*{name}] == {list(keys)!r}")
            for index, child in enumerate(children):
                _tree(writer, leaves, child, f"{name}[{keys[index] if kind == 'dict' else index!r}]")
        case _:
            raise _NotPlainError


def _constant(writer: _Writer, leaf: LeafSpec, name: str) -> None:
    baked = writer.baked.get(leaf.path)
    if baked is not None:
        writer.unless(f"_plain({name}) == {baked!r}")
    writer.unless(f"{name} is None or type({name}) in (bool, int, float, str)")


def _tensor(writer: _Writer, leaf: LeafSpec, name: str) -> None:
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
    _shape(writer, leaf, name)
    # Of what is not strided, torch refuses to say the strides.
    _strides(writer, leaf, f"{name}.stride()" if writer.flavour == "torch" else f"{name}.strides")


def _shape(writer: _Writer, leaf: LeafSpec, name: str) -> None:
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
    """Bind the symbol to what the size says, or compare the size with what is bound."""
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


def _strides(writer: _Writer, leaf: LeafSpec, source: str) -> None:
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
            _check_bound(writer, name, expr, width)


def _check_bound(writer: _Writer, name: str, expr: Expr, width: int) -> None:
    scaled = name
    if width != 1:
        scaled, rest = writer.fresh(), writer.fresh()
        writer.lines.append(f"    {scaled}, {rest} = divmod({name}, {width})")
        writer.unless(f"{rest} == 0")
    writer.later.append((scaled, expr))


def _agreements(writer: _Writer) -> None:
    """What is left: sizes and strides that follow from the symbols, where all of those are bound."""
    for name, expr in writer.later:
        text = size_text(expr, writer.bound)
        if text is not None:
            writer.unless(f"{name} == {text}")
