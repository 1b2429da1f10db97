"""Bisect without running anything: the wrong step of the compiler, and the smallest sizes that still fail.

The compiler works in stages: passes over the program's graph, decompositions, passes over the decomposed graph, and
lowerings that turn each operator into loops. Its switch turns off all steps of one stage from a number on. The stages
are tried from the last to the first. Where turning off *all* lowerings heals, the graph before them was right, so an
earlier stage is not at fault; turning off an earlier stage might heal as well, because other operators come out of it.
Where it is known whether the decomposed program is right, the search starts there: with the decompositions if it is
wrong, else with all passes off, which tells the passes from the lowerings.

A size is cut for its symbol, hence in every input that shows it. First it is cut from its end, then from its start, so
that the remaining rows are those that the failure needs, with their values: they fail, and with one less in either
direction they did not.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import field

from aotidoctor.model.answers import CompilerStep
from aotidoctor.model.case import Case
from aotidoctor.model.expr import Expr, evaluate, solve
from aotidoctor.model.record import JsonObject, record

# Steps of the compiler.
STAGES: tuple[tuple[str, str], ...] = (
    ("inductor", "lowerings"),
    ("inductor", "post_grad_passes"),
    ("inductor", "joint_graph_passes"),
    ("aot_eager_decomp_partition", "decomposition"),
    ("inductor", "pre_grad_passes"),
)
"""Backend and subsystem as the switch names them."""
PASSES = ("post_grad_passes", "joint_graph_passes", "pre_grad_passes")
NO_PASSES = "passes"
"""A stage of ours: all steps of ``PASSES``, which are off or on together."""
GOOD, BAD, FAILED = "good", "bad", "failed"
ALL_OFF = -1
WITHOUT_PASSES = f"{NO_PASSES}:{ALL_OFF}"


@record
class BisectionStep:
    """A question: are the results right, compiled with the steps after number ``max`` off (-1: all off)?

    ``done`` of about ``of`` questions were answered before it; ``steps`` is the number of steps in its stage.
    """

    backend: str
    subsystem: str
    max: int
    steps: int
    done: int
    of: int

    @property
    def key(self) -> str:
        """The key of its answer."""
        return f"{self.subsystem}:{self.max}"


@record
class WrongStep:
    """The first wrong step: ``number`` of ``subsystem``. With ``heals_at`` as the maximum the results are right.

    ``steps`` are those that it may be: one, or more where what lies between could not be compiled.
    """

    backend: str
    subsystem: str
    number: int
    heals_at: int
    steps: tuple[CompilerStep, ...]


@record
class StepNotFound:
    """The end without a step: turning off ``tried`` heals nothing, turning off ``failed`` breaks the compile."""

    tried: tuple[str, ...]
    failed: tuple[str, ...]


def next_step(
    steps: Mapping[str, Sequence[CompilerStep]], answers: Mapping[str, str], *, decomposed: bool | None = None
) -> BisectionStep | WrongStep | StepNotFound:
    """The next question, or the result. ``steps``: of a whole compile, by stage; ``answers``: by the question's key.

    ``decomposed`` is whether the decomposed program is right, None where that is not known.
    """
    tried: list[str] = []
    failed: list[str] = []
    order = STAGES
    if decomposed is not None:
        order = tuple(sorted(STAGES, key=lambda stage: (stage[1] == "decomposition") is decomposed))
    passes = [step for name in PASSES for step in steps.get(name, ())]
    if decomposed and passes:
        without = answers.get(WITHOUT_PASSES)
        if without is None:
            return _bisection_step("inductor", NO_PASSES, ALL_OFF, {**steps, NO_PASSES: passes}, answers)
        if without in (GOOD, BAD):
            order = tuple(stage for stage in order if (stage[1] in PASSES) is (without == GOOD))
            tried += [name for name in PASSES if without == BAD and steps.get(name)]
    for backend, subsystem in order:
        count = len(steps.get(subsystem, ()))
        if count == 0:
            continue
        match answers.get(f"{subsystem}:{ALL_OFF}"):
            case None:
                return _bisection_step(backend, subsystem, ALL_OFF, steps, answers)
            case "good":
                return _narrow(backend, subsystem, steps, answers)
            case "bad":
                tried.append(subsystem)
            case _:
                failed.append(subsystem)
    return StepNotFound(tried=tuple(tried), failed=tuple(failed))


def most_steps(steps: Mapping[str, Sequence[CompilerStep]]) -> int:
    """An upper bound of the questions that a search from nothing asks."""
    counts = [len(steps.get(subsystem, ())) for _, subsystem in STAGES]
    return sum(count > 0 for count in counts) + _rounds(max(counts, default=0))


def _narrow(
    backend: str, subsystem: str, steps: Mapping[str, Sequence[CompilerStep]], answers: Mapping[str, str]
) -> BisectionStep | WrongStep:
    """Halve what lies between the highest number that heals and the lowest above it that does not."""
    of_stage = steps[subsystem]
    good, bad = _between(subsystem, len(of_stage), answers)
    middle = (good + bad) // 2
    open_ones = [at for at in range(good + 1, bad) if f"{subsystem}:{at}" not in answers]
    if open_ones:
        closest = min(open_ones, key=lambda at: abs(at - middle))
        return _bisection_step(backend, subsystem, closest, steps, answers)
    return WrongStep(
        backend=backend, subsystem=subsystem, number=bad, heals_at=good, steps=tuple(of_stage[good + 1 : bad + 1])
    )


def _bisection_step(
    backend: str, subsystem: str, at: int, steps: Mapping[str, Sequence[CompilerStep]], answers: Mapping[str, str]
) -> BisectionStep:
    count = len(steps[subsystem])
    good, bad = _between(subsystem, count, answers)
    left = 1 + _rounds(count if at == ALL_OFF else max(1, (bad - good) // 2))
    return BisectionStep(
        backend=backend, subsystem=subsystem, max=at, steps=count, done=len(answers), of=len(answers) + left
    )


def _between(subsystem: str, count: int, answers: Mapping[str, str]) -> tuple[int, int]:
    """The highest number that heals and the lowest above it that does not, as far as the answers tell."""
    bad = min((at for at in range(count) if answers.get(f"{subsystem}:{at}") == BAD), default=count - 1)
    good = max((at for at in range(bad) if answers.get(f"{subsystem}:{at}") == GOOD), default=ALL_OFF)
    return good, bad


def _rounds(count: int) -> int:
    return math.ceil(math.log2(count)) if count > 1 else 0


@record
class InputDim:
    """A dim of an input: dim ``dim`` at ``path`` has ``size``, compiled as ``expr`` (None: a size of its own)."""

    path: str
    dim: int
    size: int
    expr: Expr | None

    def __str__(self) -> str:
        """``args[0].shape[1]``."""
        return f"{self.path}.shape[{self.dim}]"


@record
class CuttableSize:
    """A size that can be cut: its symbol or its place, what it is now, and the least that was compiled."""

    name: str
    value: int
    low: int
    places: tuple[InputDim, ...]


@record
class DimRange:
    """``size`` entries of a dim, from ``start`` on."""

    start: int
    size: int


# The part to keep of each size, by its name.
DimRanges = Mapping[str, DimRange]


@record
class SmallestSizes:
    """The end of a search: what is left, and the sizes at which the failure was gone, by name."""

    parts: DimRanges
    gone: Mapping[str, int] = field(default_factory=dict)


SizeSearch = Generator[DimRanges, bool, SmallestSizes]


def sizes_of(case: Case) -> tuple[CuttableSize, ...]:
    """The dynamic sizes of the inputs, the batch first; those that inputs disagree about are left out."""
    given = case.tensors
    leaves = case.contract.tensor_leaves() if case.contract is not None else ()
    places = [
        (InputDim(path=leaf.path, dim=at, size=size, expr=dim.expr), dim)
        for leaf in leaves
        if leaf.path in given and leaf.dims is not None and len(leaf.dims) == len(given[leaf.path].shape)
        for at, (dim, size) in enumerate(zip(leaf.dims, given[leaf.path].shape, strict=True))
        if dim.static is None
    ]
    values: dict[str, set[int]] = {}
    lows: dict[str, int] = {}
    for place, dim in places:
        if place.expr is None:
            values.setdefault(str(place), set()).add(place.size)
        elif (solved := solve(place.expr, place.size)) is not None:
            values.setdefault(solved[0], set()).add(solved[1])
        else:
            # A size that does not solve is a disagreement of its own: its symbols are not cut.
            for name in place.expr.symbols:
                values.setdefault(name, set()).add(-1)
        low = solve(dim.expr, dim.min) if dim.expr is not None and dim.min is not None else None
        name = low[0] if low is not None else str(place)
        lows[name] = max(lows.get(name, 1), low[1] if low is not None else dim.min or 1)
    found = []
    for name, several in values.items():
        own = tuple(place for place, _ in places if name in _names(place))
        alone = all(_names(place) == {name} for place in own)
        if len(several) == 1 and alone and max(several) > lows.get(name, 1):
            found.append(CuttableSize(name=name, value=max(several), low=lows.get(name, 1), places=own))
    return tuple(sorted(found, key=lambda one: (-sum(place.dim == 0 for place in one.places), -one.value, one.name)))


def _names(place: InputDim) -> frozenset[str]:
    return frozenset((str(place),)) if place.expr is None else place.expr.symbols


def search_smallest(sizes: Sequence[CuttableSize]) -> SizeSearch:
    """Search by questions: yield what to keep, be sent whether that still fails alike, return what is left."""
    parts = {one.name: DimRange(start=0, size=one.value) for one in sizes}
    gone: dict[str, int] = {}
    for one in sizes:
        size, passed = yield from _bisect(parts, one, one.value)
        parts[one.name] = DimRange(start=0, size=size)
        if passed is not None and size > one.low:
            # Only where it stops failing earlier does it matter which entries are left.
            end = size
            size, passed = yield from _bisect(parts, one, end, is_tail=True)
            parts[one.name] = DimRange(start=end - size, size=size)
        if passed is not None:
            gone[one.name] = passed
    return SmallestSizes(parts=parts, gone=gone)


def _bisect(
    parts: DimRanges, size: CuttableSize, end: int, *, is_tail: bool = False
) -> Generator[DimRanges, bool, tuple[int, int | None]]:
    """The least length that fails, and the largest shorter one that does not (None: there is none).

    What is left are the first of ``end`` entries, or the last of them (``is_tail``).
    """
    low, high = size.low, end
    if low >= high:
        return high, None
    if (yield {**parts, size.name: DimRange(start=end - low if is_tail else 0, size=low)}):
        return low, None
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield {**parts, size.name: DimRange(start=end - middle if is_tail else 0, size=middle)}
        low, high = (low, middle) if failed else (middle, high)
    return high, low


def dim_cuts(sizes: Sequence[CuttableSize], parts: DimRanges) -> list[tuple[InputDim, DimRange]]:
    """The part to keep of each dim of the inputs; dims that stay whole are left out."""
    found = []
    for one in sizes:
        part = parts[one.name]
        for place in one.places:
            nothing, start, size = (
                evaluate(place.expr, {one.name: value}) if place.expr is not None else value
                for value in (0, part.start, part.size)
            )
            if nothing is not None and start is not None and size is not None and size < place.size:
                found.append((place, DimRange(start=start - nothing, size=size)))
    return found


def steps_of(found: Sequence[tuple[InputDim, DimRange]]) -> list[JsonObject]:
    """The cuts as steps for the worker."""
    return [
        {"op": "slice_dim", "path": place.path, "dim": place.dim, "start": part.start, "size": part.size}
        for place, part in found
    ]


def lines_of(found: Sequence[tuple[InputDim, DimRange]]) -> str:
    """The cuts as lines of Python for the user."""
    return "\n".join(
        f"{place.path} = {place.path}.narrow({place.dim}, {part.start}, {part.size})" for place, part in found
    )
