"""Which input element makes a check fail: the check is computed for every iteration of its kernel's loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aotidoctor.localize.blame.columns import Column, Grid, UnknownError
from aotidoctor.localize.blame.computed import Computed, Loop, Number, Read, Value, Variable, parts, read, reads
from aotidoctor.localize.blame.memory import CallMemories, InputMemory, Origins, origins_at
from aotidoctor.model.localization import Element
from aotidoctor.model.record import record

_ANY = "any element"


@record
class Guilt:
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
class Question:
    """``value`` fails where ``bad(value, limit)``, unless ``mask`` is false there."""

    value: Value
    limit: Value
    mask: Value | None
    loops: Sequence[Loop]
    bad: Callable[[int, int], bool]


def out_of_range(value: int, limit: int) -> bool:
    """An index that is no index."""
    return not 0 <= value < limit


def is_zero(value: int, _limit: int) -> bool:
    """A divisor that is none."""
    return value == 0


def guilt(question: Question, memories: CallMemories, *, exactly: bool = False) -> Guilt | None:
    """The first guilty iteration; None when there is none, or when something that matters is not known.

    Where the loops are not known, all elements are asked instead, unless ``exactly``: some of them may not be read.
    """
    try:
        return _ask(question, memories)
    except UnknownError:
        if exactly:
            return None
    try:
        whole = _over_all_elements(question, memories)
        return None if whole is None else _ask(whole, memories)
    except UnknownError:
        return None


def _ask(question: Question, memories: CallMemories) -> Guilt | None:
    sources = reads(question.value)
    mask = question.mask or Number(1)
    grid = Grid(question.loops, (question.value, question.limit, mask), memories.given, memories)
    columns = [grid.column(one) for one in (question.value, question.limit, mask)]
    rows = [
        row
        for row, (value, limit, counts) in enumerate(zip(*columns, strict=True))
        if value is not None and limit is not None and counts and question.bad(value, limit)
    ]
    if not rows:
        return None
    offsets = tuple((one, grid.column(one.at)) for one in sources)
    behind: dict[str, Origins] = {
        one.parameter: found for one in sources if (found := memories(one.parameter)) is not None
    }
    first = rows[0]
    loop = None if sources else _counting(question)
    return Guilt(
        value=columns[0][first] or 0,
        limit=columns[1][first] or 0,
        elements=origins_at(offsets, behind, first),
        count=_different(offsets, rows),
        through=tuple(dict.fromkeys(name for memory in behind.values() for name in memory.calls)),
        sizes=() if loop is None else tuple(dict.fromkeys(_variables(loop.end))),
        position=None if loop is None else grid.column(Variable(loop.name))[first],
    )


def _counting(question: Question) -> Loop | None:
    """The one loop that the value counts along; None where it depends on several, or on none."""
    names = set(_variables(question.value))
    loops = [loop for loop in question.loops if loop.name in names]
    return loops[0] if len(loops) == 1 else None


def _variables(value: Value) -> list[str]:
    return [part.name for part in parts(value) if isinstance(part, Variable)]


def _different(offsets: Sequence[tuple[Read, Column]], rows: Sequence[int]) -> int:
    """How many different elements fail: one element may be read by many iterations."""
    return len({tuple(column[row] for _, column in offsets) for row in rows})


def _over_all_elements(question: Question, memories: CallMemories) -> Question | None:
    """The question for each element of the one input that matters, where the loops are not known or too long."""
    sources = reads(question.value)
    if len(sources) != 1 or question.mask is not None:
        return None
    memory = memories(sources[0].parameter)
    if not isinstance(memory, InputMemory) or memory.places is not None:
        return None
    value = _replaced(question.value, sources[0], read(sources[0].parameter, Variable(_ANY)))
    names = {part.name for part in parts(value) if isinstance(part, Variable)} - memories.given.keys() - {_ANY}
    if names:
        return None
    return Question(
        value=value,
        limit=question.limit,
        mask=None,
        loops=(Loop(name=_ANY, start=Number(0), end=Number(len(memory.values))),),
        bad=question.bad,
    )


def _replaced(value: Value, old: Value, new: Value) -> Value:
    if value == old:
        return new
    match value:
        case Computed(operation=operation, operands=operands, size=size):
            return Computed(operation, tuple(_replaced(one, old, new) for one in operands), size)
        case _:
            return value
