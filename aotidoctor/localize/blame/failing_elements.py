"""Find the input element that makes a check fail, and the dim that the bound of the check comes from.

The check is computed for every iteration of its kernel's loops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aotidoctor.kernels.value_trees import (
    Computed,
    IterationGrid,
    IterationLoop,
    KernelCheck,
    KernelFlow,
    Number,
    Read,
    UnknownError,
    Value,
    Variable,
    factor,
    parts,
    read,
    reads,
)
from aotidoctor.localize.blame.package_program import (
    CallMemories,
    InputMemory,
    OriginMemory,
    PackageProgram,
    origins_at,
)
from aotidoctor.model.evidence import Evidence, FactValue
from aotidoctor.model.expr import evaluate
from aotidoctor.model.localization import Element
from aotidoctor.model.record import record

# Failures, as far as the static facts of the package can explain them.
INDEX, DIVISION, ASSERTION = "index", "division", "assertion"
# An operator of ATen checked its own arguments; ``offsets`` is what it may find besides an index.
OPERATOR, OFFSETS = "operator", "offsets"
_KINDS = {"index-out-of-bounds": INDEX, "cuda-assert": INDEX, "integer-division": DIVISION, "runtime-assert": ASSERTION}
_NUMBER = re.compile(r"-?\d{1,19}$")


@record
class Failure:
    """One failure.

    ``kind`` is ``index``, ``division``, ``assertion``, ``operator`` or ``offsets`` (refused by an operator).
    ``variable`` and ``bound`` are the words of a bounds error, ``line`` the line of the kernel's source that raised
    it; ``condition`` and ``value`` those of an assertion.
    ``source_line`` is the line in the file that a Triton kernel was compiled from, which the package holds a copy of.
    """

    kind: str
    kernel: str | None = None
    variable: str | None = None
    bound: str | None = None
    line: int | None = None
    source_line: int | None = None
    condition: str | None = None
    value: int | None = None


def failure_of(item: Evidence) -> Failure | None:
    """The failure in a run's evidence; None for one that static facts cannot explain further."""
    facts = item.facts
    kind = _KINDS.get(str(facts.get("symptom")))
    kernel = _text(facts.get("kernel"))
    if kind == INDEX and "variable" not in facts:
        # An operator of ATen checks its own index and names no kernel; the runtime names the call.
        shim, at = _text(facts.get("shim")), facts.get("wrapper_line")
        if shim is None or not isinstance(at, int):
            return None
        size, value = _text(facts.get("size")), _number(facts.get("value"))
        return Failure(kind=OPERATOR, kernel=shim, line=at, bound=size, value=value)
    if kind is None:
        return None
    line, source_line = facts.get("file_line"), facts.get("device_line")
    return Failure(
        kind=kind,
        kernel=kernel,
        variable=_text(facts.get("variable")),
        bound=_text(facts.get("bound")),
        line=line if isinstance(line, int) and kernel is not None else None,
        source_line=source_line if isinstance(source_line, int) else None,
        condition=_text(facts.get("condition")),
        value=_number(facts.get("value")),
    )


def _text(value: FactValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: FactValue) -> int | None:
    if isinstance(value, str) and _NUMBER.match(value):
        return int(value)
    return value if isinstance(value, int) else None


# Bounds.
_DEEPEST = 4
_SYMBOL = re.compile(r"[a-z]+\d+$")


@record
class IndexedTensor:
    """A tensor by the user's name, with sizes and strides as numbers (None where they are not known)."""

    name: str
    shape: Sequence[int | None]
    stride: Sequence[int | None]


def constant_number(value: Value, memories: CallMemories) -> int | None:
    """``value`` as a number, where it does not depend on loops or elements."""
    try:
        (found,) = IterationGrid((), (value,), memories.given, memories).column(value)
    except (UnknownError, ValueError):
        return None
    return found


def bound_origin(
    program: PackageProgram, at: int, flow: KernelFlow, check: KernelCheck, memories: CallMemories
) -> str | None:
    """``table.weight.shape[0]``, ``s77 = args[0].shape[0]``, or None."""
    bound = constant_number(check.limit, memories)
    symbol = _symbol(program, at, check.limit)
    found: dict[str, None] = {}
    for access in flow.accesses:
        step = factor(access.at, check.value)
        table = indexed_tensor(program, at, access.parameter) if step is not None else None
        if table is None or step is None or bound is None:
            continue
        stride = constant_number(step, memories)
        pairs = enumerate(zip(table.shape, table.stride, strict=False))
        dims = [dim for dim, (size, own) in pairs if size == bound and own is not None and own == stride]
        if len(dims) == 1:
            found[f"{table.name}.shape[{dims[0]}]"] = None
    if symbol is not None and (not found or symbol[1] in found):
        return f"{symbol[0]} = {symbol[1]}"
    return next(iter(found)) if len(found) == 1 else None


def _symbol(program: PackageProgram, at: int, limit: Value) -> tuple[str, str] | None:
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


def indexed_tensor(program: PackageProgram, at: int, parameter: str, depth: int = 0) -> IndexedTensor | None:
    """The tensor that the call at ``at`` hands to its kernel as ``parameter``; None where it is not known."""
    pair = program.arguments(at).get(parameter)
    if pair is None or depth > _DEEPEST or program.is_view(pair[1]):
        return None
    flow = program.flow(program.call(at).name) if not pair[0].const else None
    for store in flow.stores if flow is not None else ():
        # A kernel that copies each element to the same offset: both have one shape.
        if store.parameter == parameter and isinstance(store.value, Read) and store.value.at == store.at:
            return indexed_tensor(program, at, store.value.parameter, depth + 1)
    name = program.root(pair[1])
    writer = program.writer(name, at)
    if writer is not None:
        same = [key for key, (one, text) in program.arguments(writer).items() if one.pointer and text == pair[1]]
        return indexed_tensor(program, writer, same[0], depth + 1) if len(same) == 1 else None
    constant = program.constants.get(name)
    if constant is not None:
        return IndexedTensor(name=constant.fqn, shape=constant.shape or (), stride=constant.stride or ())
    leaf = program.leaves.get(name)
    if leaf is None or leaf.dims is None:
        return None
    sizes = [dim.size(program.sizes) for dim in leaf.dims]
    strides: list[int | None] = list(leaf.strides or ())
    exprs = leaf.stride_exprs or ()
    for dim, expr in enumerate(exprs):
        if expr is not None and dim < len(strides) and strides[dim] is None:
            strides[dim] = evaluate(expr, program.sizes)
    return IndexedTensor(name=leaf.path, shape=sizes, stride=strides)


# Elements.
_ANY = "any element"


@record
class FailingElement:
    """The first iteration that fails: the value in question, its limit, the elements behind it, how many are like it.

    ``through`` are the calls between the inputs and this kernel. Where the value is made of positions alone, ``sizes``
    are the numbers given to the kernel that say how many there are, and ``position`` is the first that fails.
    """

    value: int
    limit: int
    elements: tuple[Element, ...]
    count: int
    through: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    position: int | None = None


@record
class CheckQuery:
    """A check to evaluate: ``value`` fails where ``bad(value, limit)``, unless ``mask`` is false there."""

    value: Value
    limit: Value
    mask: Value | None
    loops: Sequence[IterationLoop]
    bad: Callable[[int, int], bool]


def out_of_range(value: int, limit: int) -> bool:
    """Whether an index is out of range."""
    return not 0 <= value < limit


def failing_element(question: CheckQuery, memories: CallMemories, *, exactly: bool = False) -> FailingElement | None:
    """The first guilty iteration; None when there is none, or when something that matters is not known.

    Where the loops are not known, all elements are tried instead, unless ``exactly``: some of them may not be read.
    """
    try:
        return _evaluate_query(question, memories)
    except UnknownError:
        if exactly:
            return None
    try:
        whole = _over_all_elements(question, memories)
        return None if whole is None else _evaluate_query(whole, memories)
    except UnknownError:
        return None


def _evaluate_query(question: CheckQuery, memories: CallMemories) -> FailingElement | None:
    sources = reads(question.value)
    mask = question.mask or Number(1)
    grid = IterationGrid(question.loops, (question.value, question.limit, mask), memories.given, memories)
    columns = [grid.column(one) for one in (question.value, question.limit, mask)]
    rows = [
        row
        for row, (value, limit, counts) in enumerate(zip(*columns, strict=True))
        if value is not None and limit is not None and counts and question.bad(value, limit)
    ]
    if not rows:
        return None
    offsets = tuple((one, grid.column(one.at)) for one in sources)
    behind: dict[str, OriginMemory] = {
        one.parameter: found for one in sources if (found := memories(one.parameter)) is not None
    }
    first = rows[0]
    # The one loop that the value counts along; None where it depends on several, or on none.
    names = set(_variables(question.value)) if not sources else set()
    loops = [loop for loop in question.loops if loop.name in names]
    loop = loops[0] if len(loops) == 1 else None
    # How many different elements fail: one element may be read by many iterations.
    return FailingElement(
        value=columns[0][first] or 0,
        limit=columns[1][first] or 0,
        elements=origins_at(offsets, behind, first),
        count=len({tuple(column[row] for _, column in offsets) for row in rows}),
        through=tuple(dict.fromkeys(name for memory in behind.values() for name in memory.calls)),
        sizes=() if loop is None else tuple(dict.fromkeys(_variables(loop.end))),
        position=None if loop is None else grid.column(Variable(loop.name))[first],
    )


def _variables(value: Value) -> list[str]:
    return [part.name for part in parts(value) if isinstance(part, Variable)]


def _over_all_elements(question: CheckQuery, memories: CallMemories) -> CheckQuery | None:
    """The question for each element of the one input that matters, where the loops are not known or too long."""
    sources = reads(question.value)
    if len(sources) != 1 or question.mask is not None:
        return None
    memory = memories(sources[0].parameter)
    if not isinstance(memory, InputMemory) or memory.places is not None:
        return None
    value = _replace_value(question.value, sources[0], read(sources[0].parameter, Variable(_ANY)))
    names = {part.name for part in parts(value) if isinstance(part, Variable)} - memories.given.keys() - {_ANY}
    if names:
        return None
    return CheckQuery(
        value=value,
        limit=question.limit,
        mask=None,
        loops=(IterationLoop(name=_ANY, start=Number(0), end=Number(len(memory.values))),),
        bad=question.bad,
    )


def _replace_value(value: Value, old: Value, new: Value) -> Value:
    if value == old:
        return new
    match value:
        case Computed(operation=operation, operands=operands, size=size):
            return Computed(operation, tuple(_replace_value(one, old, new) for one in operands), size)
        case _:
            return value
