"""Infer dtypes, sizes and strides of inputs that no compiled check states, from what the kernels do.

Packages of torch 2.6 hold no input checks, and a size that follows from another one (``seq + 1``) is checked by none
before 2.13. Much follows from matrix products and from the loops of the generated C++ kernels:

Products: in ``aoti_torch_cpu_addmm_out(buf0, bias, arg0_1, weight, 1L, 1L)``, ``arg0_1`` has the dtype of the result,
is a matrix, has a row for each row of the result, and a column for each row of the other factor. Of an input that is
viewed for it only the dtype follows.

Extents: a loop over ``x0 < 10L*ks1`` that loads ``in_ptr0 + x0`` needs that many elements. Only what every call does
counts: accesses below a condition, through an index that is computed, or in a loop that may be empty are left out. So
a larger size is never wrong, a smaller one is.

Strides: a load of ``in_ptr0 + x2 + 143L*x1 + 429L*x0`` goes through dims with strides 429, 143 and 1, and a loop that
goes through several dims at once is divided by the sizes of the buffer that it writes, which the wrapper allocates
with its strides. An index that is looked up in another tensor counts as a loop where a compiled check bounds it. Where
anything is read below a condition, or in another way, the strides of the input stay unknown.

Imported only where a contract leaves inputs open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import takewhile

from aotidoctor.kernels.expressions import loop_header, parse_expr
from aotidoctor.model.contract import (
    GENERATED,
    ConstantSpec,
    Dim,
    KernelBody,
    LeafSpec,
    ModelContract,
    Reads,
    Turn,
    Walk,
    earlier_names,
)
from aotidoctor.model.expr import Expr, Num, Product, Sum, Sym, evaluate, product_of, substitute, sum_of, whole
from aotidoctor.model.record import record
from aotidoctor.readers.contract.input_leaves import SymbolTable, has_open_strides, is_described, known_expr
from aotidoctor.readers.contract.kernel_calls import arguments_of
from aotidoctor.readers.contract.run_impl import Body, Buffer

# Dtype, rank and sizes, from matrix products. The result and the two factors among the arguments.
_PLACES = {"mm_out": (0, 1, 2), "bmm_out": (0, 1, 2), "addmm_out": (0, 2, 3), "baddbmm_out": (0, 2, 3)}
_PRODUCT = re.compile(rf"aoti_torch_[a-z]+_(?P<name>{'|'.join(_PLACES)})")
_Shape = tuple[str, ...]


def with_implied_products(contract: ModelContract, body: Body, symbols: SymbolTable) -> ModelContract:
    """``contract`` with dtypes and dims from products for tensors that are not described."""
    if all(map(is_described, contract.tensor_leaves())):
        return contract
    # Of each input in a product its dtype, and its shape, None where a view is between them.
    facts: dict[str, list[tuple[str, _Shape | None]]] = {}
    constants = {constant.name: constant for constant in contract.constants}
    for call in body.calls:
        found = _PRODUCT.fullmatch(call.function)
        places = _PLACES[found["name"]] if found is not None else ()
        arguments = arguments_of(call) if places else ()
        if not places or len(arguments) <= max(places):
            continue
        out, left, right = (arguments[place] for place in places)
        shape, *sizes = (_shape_of(name, body, constants) for name in (out, left, right))
        known = next(
            (one for one in earlier_names(out, body.renamed) if one in body.view_dtypes or one in body.buffers), None
        )
        if known is None:
            continue
        dtype = body.view_dtypes[known] if known in body.view_dtypes else body.buffers[known].dtype
        factors = ((left, _factor_shape(shape, sizes[1], -2)), (right, _factor_shape(shape, sizes[0], -1)))
        for name, factor in factors:
            # As far as its names go back without a view of another dtype.
            for step in takewhile(lambda one: one not in body.view_dtypes, earlier_names(name, body.renamed)):
                if step in body.unpacked:
                    facts.setdefault(step, []).append((dtype, factor if step == name else None))
    leaves = (
        _with_product_facts(leaf, facts[leaf.generated_name], symbols) if leaf.generated_name in facts else leaf
        for leaf in contract.leaves
    )
    return replace(contract, leaves=tuple(leaves))


def _with_product_facts(leaf: LeafSpec, facts: list[tuple[str, _Shape | None]], symbols: SymbolTable) -> LeafSpec:
    dtypes = {dtype for dtype, _ in facts}
    leaf = replace(leaf, dtype=leaf.dtype or (dtypes.pop() if len(dtypes) == 1 else None))
    shapes = {shape for _, shape in facts if shape is not None}
    if leaf.rank is not None or len(shapes) != 1:
        return leaf
    dims = []
    for at, text in enumerate(shapes.pop()):
        size = known_expr(symbols.read(text))
        # What the wrapper says of this dim itself comes first.
        dim = leaf.dims[at] if leaf.dims is not None and at < len(leaf.dims) else Dim()
        if dim.static is None and dim.expr is None:
            fixed = whole(size)
            dim = Dim(static=fixed, expr=size) if fixed is not None else replace(dim, expr=size)
        dims.append(dim)
    nothing = (None,) * len(dims)
    return replace(leaf, rank=len(dims), dims=tuple(dims), strides=nothing, stride_exprs=nothing)


def _factor_shape(result: _Shape | None, other: _Shape | None, shared: int) -> _Shape | None:
    """The shape of a factor: dim ``shared`` is that of the result, the other one is the dim that is summed over."""
    if result is None or other is None or len(result) != len(other) or len(result) < 2:
        return None
    pair = (result[-2], other[-2]) if shared == -2 else (other[-1], result[-1])
    return (*result[:-2], *pair)


def _shape_of(name: str, body: Body, constants: Mapping[str, ConstantSpec]) -> _Shape | None:
    """The shape as the wrapper writes it; None of an input itself."""
    for step in earlier_names(name, body.renamed):
        if step in body.view_shapes:
            return body.view_shapes[step]
        if step in body.buffers:
            return body.buffers[step].shape
        if step in body.constants:
            shape = constants[step].shape if step in constants else None
            return tuple(map(str, shape)) if shape is not None else None
    return None


# Least sizes, from how far the loops of kernels read.
_ACCESS = re.compile(r"(?P<vector>\b(?:loadu|store)\()?\b(?P<name>\w{1,60})(?:\[| \+ )static_cast<int64_t>\(")
_CONDITIONS = ("if", "else", "while", "switch", "do", "case")
_SPLITS = ("if(C10_LIKELY(", "if(C10_UNLIKELY(")
_LONGEST = 2000
_MOST_LINES = 20_000
_MOST = 8
_ONE = Num(1)


@record
class KernelLoop:
    """A scope: the variable that it runs over, below ``trips``; a scope that is no loop has neither.

    ``sure``: it is entered in every call; ``stepped``: it goes by more than one; ``started``: it does not begin at zero
    and is not the rest of another loop either. ``opened`` is its line, counted from 0.
    """

    depth: int
    sure: bool
    variable: str = ""
    trips: Expr = _ONE
    stepped: bool = False
    started: bool = False
    opened: int = 0


@record
class KernelAccess:
    """A place in a kernel that loads or stores ``pointer[offset]``; ``scopes`` are those around it, outermost first.

    ``sure``: every call executes it; ``vector``: it loads a vector. ``loops`` are those around it.
    """

    pointer: str
    offset: Expr
    loops: Mapping[str, KernelLoop]
    vector: bool
    sure: bool
    scopes: tuple[int, ...]


def lines_of(body: KernelBody, texts: Mapping[str, str]) -> Sequence[str]:
    """The kernel's lines; none of one that is too long."""
    if body.lines > _MOST_LINES:
        return ()
    return texts.get(body.member, "").split("\n", body.line + body.lines)[body.line - 1 : body.line - 1 + body.lines]


def accesses(lines: Sequence[str], numbers: Mapping[str, Expr]) -> Iterator[KernelAccess]:
    """Each access of the kernel that is written in one of the usual forms, in order."""
    scopes: list[KernelLoop] = []
    depth, pending = 0, KernelLoop(depth=0, sure=True)
    for at, line in enumerate(map(str.strip, lines)):
        if line.startswith("for"):
            pending = _loop(line, numbers)
            continue
        if "[&]" in line or (line.startswith(_CONDITIONS) and not line.startswith(_SPLITS)):
            pending = KernelLoop(depth=0, sure=False)
        elif "static_cast" in line:
            sure = "?" not in line and pending.sure and all(scope.sure for scope in scopes)
            loops = {one.variable: one for one in scopes if one.variable}
            for found in _ACCESS.finditer(line):
                text = _inside(line, found.end())
                if text is not None:
                    yield KernelAccess(
                        pointer=found["name"],
                        offset=substitute(parse_expr(text), numbers),
                        loops=loops,
                        vector=found["vector"] is not None,
                        sure=sure,
                        scopes=tuple(one.opened for one in scopes),
                    )
        opened, closed = line.count("{"), line.count("}")
        if opened > closed:
            depth += opened - closed
            scopes.append(replace(pending, depth=depth, opened=at))
            pending = KernelLoop(depth=0, sure=True)
        elif closed > opened:
            depth -= closed - opened
            while scopes and scopes[-1].depth > depth:
                scopes.pop()


def _loop(line: str, numbers: Mapping[str, Expr]) -> KernelLoop:
    """The loop that a header opens; one that is not certain to run where it is written in another form."""
    variable, start, end, step = loop_header(line) or ("", "", "", "")
    trips = substitute(parse_expr(end), numbers)
    if not is_positive(trips):
        return KernelLoop(depth=0, sure=False)
    started = parse_expr(start) != Num(0) and not variable.endswith("_tail")
    stepped = parse_expr(step) != _ONE
    return KernelLoop(depth=0, sure=True, variable=variable, trips=trips, stepped=stepped, started=started)


def is_positive(expr: Expr) -> bool:
    """Whether it is at least one wherever the sizes in it are."""
    match expr:
        case Num(over=over, under=under):
            return over > 0 and under == 1
        case Sym():
            return True
        case Product() | Sum():
            return all(map(is_positive, expr.parts()))
        case _:
            return False


def _inside(line: str, start: int) -> str | None:
    """The text between the parenthesis before ``start`` and the one that closes it."""
    depth = 1
    for at in range(start, min(len(line), start + _LONGEST)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            return line[start:at]
    return None


def _reads(access: KernelAccess) -> Reads | None:
    """How far an access goes; None where anything but loops moves it.

    A loop that goes by more than one reaches its last element only with a vector along it, whose rest is read in a
    branch of its own; else its first turn alone is counted.
    """
    furthest: list[Expr] = [_ONE]
    steps: dict[str, Expr] = {}
    for name, step in _terms(access.offset):
        loop = access.loops.get(name or "")
        if name is None:
            furthest.append(step)
        elif loop is None or not is_positive(step):
            return None
        elif not loop.stepped or (access.vector and step == _ONE):
            furthest.append(product_of((step, sum_of((loop.trips, Num(-1))))))
            steps[name] = step
    outermost = next((steps[name] for name in access.loops if name in steps), None)
    return Reads(extent=sum_of(tuple(furthest)), step=outermost if len(steps) > 1 else None)


# Strides, from the steps in which the loops of kernels go.
_MOST_WALKS = 12
_SAME = re.compile(r"auto (tmp\d{1,6}) = (?:c10::convert<int64_t>\()?(tmp\d{1,6})\)?;")
_CHECK = re.compile(r"AOTI_TORCH_CHECK\(\(0 <= (tmp\d{1,6})\) & \(tmp\d{1,6} < (\d{1,18})L\),")
_KERNEL = ('extern "C"', "template <")
_PARTS = ("_inner", "_tail")


@record(kw_only=False, frozen=False)
class _InputReads:
    """How far kernels read into one input, the walks through it, and whether there are other reads of it."""

    reads: dict[Reads, None] = field(default_factory=dict)
    walks: list[Walk] = field(default_factory=list)
    others: bool = False


def with_kernel_reads(
    contract: ModelContract, body: Body, symbols: SymbolTable, texts: Mapping[str, str]
) -> ModelContract:
    """``contract`` with ``reads`` for each tensor of which a size is not known, ``walks`` where no stride is.

    ``texts`` maps members to sources.
    """
    wanted = {
        leaf.generated_name or "": _InputReads()
        for leaf in contract.tensor_leaves()
        if leaf.has_open_sizes or has_open_strides(leaf)
    }
    bodies = {one.name: one for one in contract.bodies if one.kind == "cpp"}
    for call in contract.kernels:
        if call.kind not in GENERATED or wanted.keys().isdisjoint(call.arguments):
            continue
        source = bodies.get(call.name)
        if source is None or len(call.arguments) != len(source.parameters):
            for name in wanted.keys() & set(call.arguments):
                wanted[name].others = True
            continue
        given = dict(zip((one.name for one in source.parameters), call.arguments, strict=True))
        written = {one.name for one in source.parameters if one.pointer and not one.const}
        forms = {name: _form(body.buffers.get(given[name]), symbols) for name in written}
        _of_call(given, source, lines_of(source, texts), forms, wanted)
    leaves = (
        _with_reads(leaf, wanted.get(leaf.generated_name or "")) if leaf.input_index is not None else leaf
        for leaf in contract.leaves
    )
    return replace(contract, leaves=tuple(leaves))


def _with_reads(leaf: LeafSpec, found: _InputReads | None) -> LeafSpec:
    if found is not None and leaf.has_open_sizes:
        # The furthest one of those that are numbers, and some of the others.
        fixed = [one for one in found.reads if isinstance(one.extent, Num)]
        furthest = max(fixed, key=lambda one: evaluate(one.extent, {}) or 0, default=None)
        chosen = tuple(one for one in found.reads if one is furthest or not isinstance(one.extent, Num))
        leaf = replace(leaf, reads=chosen[:_MOST])
    if found is not None and has_open_strides(leaf):
        walks = tuple(dict.fromkeys(found.walks))[:_MOST_WALKS]
        leaf = replace(leaf, walks=walks, walked=bool(walks) and not found.others)
    return leaf


# Sizes and strides.
_Form = tuple[tuple[Expr, ...], tuple[Expr, ...]]


def _form(buffer: Buffer | None, symbols: SymbolTable) -> _Form | None:
    if buffer is None or buffer.shape is None or buffer.strides is None or len(buffer.shape) != len(buffer.strides):
        return None
    return tuple(map(symbols.read, buffer.shape)), tuple(map(symbols.read, buffer.strides))


def _of_call(
    given: Mapping[str, str],
    source: KernelBody,
    lines: Sequence[str],
    forms: Mapping[str, _Form | None],
    wanted: Mapping[str, _InputReads],
) -> None:
    """Note the reads of one call; ``forms`` are those of the buffers that it writes to, by parameter."""
    numbers = {one.name: parse_expr(given[one.name]) for one in source.parameters if not one.pointer}
    inputs = {name: wanted[argument] for name, argument in given.items() if argument in wanted}
    seen = [access for access in accesses(lines, numbers) if access.pointer in inputs or access.pointer in forms]
    bounds = _bounds(lines)
    # The kernel below its parameters, and before the next kernel.
    opened = next((at for at, line in enumerate(lines) if line.strip().startswith("{")), 0)
    own = list(takewhile(lambda line: not line.startswith(_KERNEL), lines[opened:]))
    for name, found in inputs.items():
        mine = [access for access in seen if access.pointer == name]
        mentions = sum(len(re.findall(rf"\b{name}\b", line)) for line in own)
        found.others |= len(mine) != mentions or not mine
        for access in mine:
            if access.sure and (reads := _reads(access)) is not None:
                found.reads[reads] = None
            walk = _walk(access, bounds)
            if walk is None:
                found.others = True
            else:
                # In the same scope, or in one around it that is a loop.
                around = (one for one in seen if one.loops and access.scopes[: len(one.scopes)] == one.scopes)
                found.walks.append(_beside(walk, access, (one for one in around if one.pointer in forms), forms))


def _bounds(lines: Sequence[str]) -> Mapping[str, int]:
    """Upper bounds of looked-up indices that a compiled check compares with a number."""
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


def _steps(access: KernelAccess) -> dict[str, Expr] | None:
    """The step of each variable that moves it; None where anything else does."""
    steps: dict[str, Expr] = {}
    for name, step in _terms(access.offset):
        if name == "" or (name is not None and (name in steps or not is_positive(step))):
            return None
        if name is not None:
            steps[name] = step
    return steps


def _whole(steps: Mapping[str, Expr]) -> list[str]:
    """The variables without those that run over the parts of another one."""
    return [name for name in steps if not any(name == whole + part for whole in steps for part in _PARTS)]


def _walk(access: KernelAccess, bounds: Mapping[str, int]) -> Walk | None:
    steps = _steps(access)
    if steps is None or not access.sure:
        return None
    start = next((step.over for name, step in _terms(access.offset) if name is None and isinstance(step, Num)), 0)
    turns = []
    for name in _whole(steps):
        loop, step = access.loops.get(name), steps[name]
        trips: Expr | None = None
        if name in bounds:
            trips = Num(bounds[name])
        elif loop is not None and not loop.started:
            # A loop that goes by more than one reaches every element with a vector along it, or with a loop of its own
            # over each part: ``x1 + x1_inner``.
            inner = any(steps.get(name + part) == step for part in _PARTS)
            trips = loop.trips if not loop.stepped or inner or (access.vector and step == _ONE) else None
        if trips is None:
            return None
        turns.append(Turn(step=step, trips=trips))
    return Walk(start=start, turns=tuple(turns)) if start >= 0 else None


def _beside(
    walk: Walk, access: KernelAccess, stores: Iterator[KernelAccess], forms: Mapping[str, _Form | None]
) -> Walk:
    """``walk`` with the steps of a store to a buffer of known form, in the same loops."""
    names = _whole(_steps(access) or {})
    for store in stores:
        form, steps = forms.get(store.pointer), _steps(store)
        if form is not None and steps is not None and any(name in steps for name in names):
            turns = tuple(replace(turn, beside=steps.get(name)) for name, turn in zip(names, walk.turns, strict=True))
            return replace(walk, turns=turns, sizes=form[0], strides=form[1])
    return walk
