"""In which steps the generated C++ kernels go through an input, where nothing states its strides.

Packages of torch 2.6 hold no input checks. What the loops of a kernel do says much of its inputs all the same: to load
``in_ptr0 + x2 + 143L*x1 + 429L*x0`` is to go through dims with strides 429, 143 and 1, and a loop that goes through
several dims at once is divided by the sizes of the buffer that it writes, which the wrapper allocates with its strides.
An index that is looked up in another tensor counts as a loop where a compiled check bounds it. What is read below a
condition, or in another way, is no walk, and the input is then not known to be walked only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import takewhile

from aotidoctor.model.contract import Contract, KernelBody, KernelCall, Turn, Walk
from aotidoctor.model.expr import Expr, Num, Product, Sum, Sym, parse_expr, product_of
from aotidoctor.model.record import record
from aotidoctor.readers.contract.body_records import Body, Buffer
from aotidoctor.readers.contract.implied import has_open_strides
from aotidoctor.readers.contract.implied_reads import Access, accesses, is_positive, lines_of
from aotidoctor.readers.contract.symbols import SymbolTable

_MOST = 12
_ONE = Num(1)
_SAME = re.compile(r"auto (tmp\d{1,6}) = (?:c10::convert<int64_t>\()?(tmp\d{1,6})\)?;")
_CHECK = re.compile(r"AOTI_TORCH_CHECK\(\(0 <= (tmp\d{1,6})\) & \(tmp\d{1,6} < (\d{1,18})L\),")
_KERNEL = ('extern "C"', "template <")
_PARTS = ("_inner", "_tail")


@record(kw_only=False, frozen=False)
class _Found:
    """The walks through one input, and whether there are other reads of it."""

    walks: list[Walk] = field(default_factory=list)
    others: bool = False


def with_implied_walks(contract: Contract, body: Body, symbols: SymbolTable, texts: Mapping[str, str]) -> Contract:
    """``contract`` with ``walks`` for each tensor of which no stride is known. ``texts`` maps members to sources."""
    wanted = {leaf.generated_name or "" for leaf in contract.tensor_leaves() if has_open_strides(leaf)}
    if not wanted:
        return contract
    found = {name: _Found() for name in wanted}
    buffers = _buffers(body, symbols)
    bodies = {one.name: one for one in contract.bodies if one.kind == "cpp"}
    for call in contract.kernels:
        if call.kind not in ("cpp", "triton") or wanted.isdisjoint(call.arguments):
            continue
        source = bodies.get(call.name)
        if source is None or len(call.arguments) != len(source.parameters):
            for name in wanted.intersection(call.arguments):
                found[name].others = True
            continue
        _of_call(call, source, lines_of(source, texts), buffers, found)
    leaves = (
        replace(leaf, walks=tuple(dict.fromkeys(one.walks))[:_MOST], walked=bool(one.walks) and not one.others)
        if (one := found.get(leaf.generated_name or "")) is not None and leaf.input_index is not None
        else leaf
        for leaf in contract.leaves
    )
    return replace(contract, leaves=tuple(leaves))


@record
class _Form:
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]


def _buffers(body: Body, symbols: SymbolTable) -> Mapping[str, _Form]:
    return {name: form for name, one in body.buffers.items() if (form := _form(one, symbols)) is not None}


def _form(buffer: Buffer, symbols: SymbolTable) -> _Form | None:
    if buffer.shape is None or buffer.strides is None or len(buffer.shape) != len(buffer.strides):
        return None
    return _Form(sizes=tuple(map(symbols.read, buffer.shape)), strides=tuple(map(symbols.read, buffer.strides)))


def _of_call(
    call: KernelCall, source: KernelBody, lines: Sequence[str], buffers: Mapping[str, _Form], found: dict[str, _Found]
) -> None:
    given = dict(zip((one.name for one in source.parameters), call.arguments, strict=True))
    numbers = {one.name: parse_expr(given[one.name]) for one in source.parameters if not one.pointer}
    written = {one.name for one in source.parameters if one.pointer and not one.const}
    inputs = {name: argument for name, argument in given.items() if argument in found}
    seen = [access for access in accesses(lines, numbers) if access.pointer in inputs or access.pointer in written]
    bounds = _bounds(lines)
    for name, argument in inputs.items():
        mine = [access for access in seen if access.pointer == name]
        if len(mine) != _mentions(lines, name) or not mine:
            found[argument].others = True
        for access in mine:
            walk = _walk(access, bounds)
            if walk is None:
                found[argument].others = True
            else:
                stores = (one for one in seen if one.pointer in written and _around(one, access))
                found[argument].walks.append(_beside(walk, access, stores, {n: buffers.get(given[n]) for n in written}))


def _around(store: Access, access: Access) -> bool:
    """Whether the store is in the same scope, or in one around it that is a loop."""
    return bool(store.loops) and access.scopes[: len(store.scopes)] == store.scopes


def _mentions(lines: Sequence[str], name: str) -> int:
    """How often the kernel speaks of the pointer below its parameters, and before the next kernel."""
    opened = next((at for at, line in enumerate(lines) if line.strip().startswith("{")), 0)
    mine = takewhile(lambda line: not line.startswith(_KERNEL), lines[opened:])
    return sum(len(re.findall(rf"\b{name}\b", line)) for line in mine)


def _bounds(lines: Sequence[str]) -> Mapping[str, int]:
    """Looked-up indices that a compiled check holds below a number."""
    same: dict[str, str] = {}
    bounds: dict[str, int] = {}
    for line in map(str.strip, lines):
        if (alias := _SAME.fullmatch(line)) is not None:
            same[alias[1]] = same.get(alias[2], alias[2])
        elif (check := _CHECK.match(line)) is not None:
            name = same.get(check[1], check[1])
            # One name in two loops: no number is certain.
            bounds[name] = int(check[2]) if bounds.get(name, int(check[2])) == int(check[2]) else 0
    named = {**{name: name for name in bounds}, **same}
    return {name: bounds[first] for name, first in named.items() if bounds.get(first, 0) > 0}


def _terms(offset: Expr) -> Iterator[tuple[str | None, Expr]]:
    """The variable of each term (None of a number, empty where there are more), and what it is multiplied with."""
    for term in offset.terms if isinstance(offset, Sum) else (offset,):
        if isinstance(term, Num):
            yield None, term
            continue
        factors = term.factors if isinstance(term, Product) else (term,)
        moved = [one for one in factors if isinstance(one, Sym) and (one.name[0] == "x" or one.name[:3] == "tmp")]
        name = moved[0].name if len(moved) == 1 else ""
        yield name, product_of(tuple(one for one in factors if one not in moved))


def _steps(access: Access) -> dict[str, Expr] | None:
    """The step of each variable that moves it; None where anything else does."""
    steps: dict[str, Expr] = {}
    for name, step in _terms(access.offset):
        if name == "" or (name is not None and (name in steps or not is_positive(step))):
            return None
        if name is not None:
            steps[name] = step
    return steps


def _whole(steps: Mapping[str, Expr]) -> list[str]:
    """The variables but for those that go over the parts of another one."""
    return [name for name in steps if not any(name == whole + part for whole in steps for part in _PARTS)]


def _walk(access: Access, bounds: Mapping[str, int]) -> Walk | None:
    steps = _steps(access)
    if steps is None or not access.sure:
        return None
    start = next((step.over for name, step in _terms(access.offset) if name is None and isinstance(step, Num)), 0)
    turns = []
    for name in _whole(steps):
        trips = _trips(name, steps[name], access, steps, bounds)
        if trips is None:
            return None
        turns.append(Turn(step=steps[name], trips=trips))
    return Walk(start=start, turns=tuple(turns)) if start >= 0 else None


def _trips(name: str, step: Expr, access: Access, steps: Mapping[str, Expr], bounds: Mapping[str, int]) -> Expr | None:
    """How often a variable turns; None where that is not certain.

    A loop that goes by more than one reaches every element with a vector along it, or with a loop of its own over each
    part: ``x1 + x1_inner``.
    """
    if name in bounds:
        return Num(bounds[name])
    loop = access.loops.get(name)
    if loop is None or loop.started:
        return None
    inner = any(steps.get(name + part) == step for part in _PARTS)
    return loop.trips if not loop.stepped or inner or (access.vector and step == _ONE) else None


def _beside(walk: Walk, access: Access, stores: Iterator[Access], forms: Mapping[str, _Form | None]) -> Walk:
    """With the steps of a store to a buffer of known form, in the same loops."""
    names = _whole(_steps(access) or {})
    for store in stores:
        form, steps = forms.get(store.pointer), _steps(store)
        if form is not None and steps is not None and any(name in steps for name in names):
            turns = tuple(replace(turn, beside=steps.get(name)) for name, turn in zip(names, walk.turns, strict=True))
            return replace(walk, turns=turns, sizes=form.sizes, strides=form.strides)
    return walk
