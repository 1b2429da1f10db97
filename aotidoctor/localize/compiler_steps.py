"""Which step of the compiler makes the wrong numbers: the search, without the runs that answer its questions.

The compiler works in stages: passes over the program's graph, decompositions, passes over the decomposed graph, and
lowerings that turn each operator into loops. Its switch turns off all steps of one stage from a number on. The stages
are asked from the last to the first. Where turning off *all* lowerings heals, the graph before them was right, so an
earlier stage is not at fault; turning off an earlier stage might heal as well, because other operators come out of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from aotidoctor.model.answers.made import Step
from aotidoctor.model.record import record

STAGES: tuple[tuple[str, str], ...] = (
    ("inductor", "lowerings"),
    ("inductor", "post_grad_passes"),
    ("inductor", "joint_graph_passes"),
    ("aot_eager_decomp_partition", "decomposition"),
    ("inductor", "pre_grad_passes"),
)
"""Backend and subsystem as the switch names them."""
GOOD, BAD, FAILED = "good", "bad", "failed"
ALL_OFF = -1


@record
class Question:
    """Compile with the steps after number ``max`` off (-1: with all of them off): right numbers?

    ``done`` of about ``of`` questions were answered before it; ``steps`` are the steps of its stage.
    """

    backend: str
    subsystem: str
    max: int
    steps: int
    done: int
    of: int

    @property
    def key(self) -> str:
        """Under which its answer is kept."""
        return f"{self.subsystem}:{self.max}"


@record
class Found:
    """The first step that is wrong: ``number`` of ``subsystem``. Right with ``heals_at`` as the switch's maximum.

    ``steps`` are those that it may be: one, or more where what lies between could not be compiled.
    """

    backend: str
    subsystem: str
    number: int
    heals_at: int
    steps: tuple[Step, ...]


@record
class NotFound:
    """No stage heals it. ``tried`` heal nothing when off, ``failed`` cannot be turned off: the compile fails then."""

    tried: tuple[str, ...]
    failed: tuple[str, ...]


def next_question(steps: Mapping[str, Sequence[Step]], answers: Mapping[str, str]) -> Question | Found | NotFound:
    """What to ask next. ``steps`` are those of a whole compile by stage, ``answers`` by ``Question.key``."""
    tried, failed = [], []
    for backend, subsystem in STAGES:
        count = len(steps.get(subsystem, ()))
        if count == 0:
            continue
        match answers.get(f"{subsystem}:{ALL_OFF}"):
            case None:
                return _question(backend, subsystem, ALL_OFF, steps, answers)
            case "good":
                return _narrow(backend, subsystem, steps, answers)
            case "bad":
                tried.append(subsystem)
            case _:
                failed.append(subsystem)
    return NotFound(tried=tuple(tried), failed=tuple(failed))


def most_questions(steps: Mapping[str, Sequence[Step]]) -> int:
    """An upper bound of the questions that a search from nothing asks."""
    counts = [len(steps.get(subsystem, ())) for _, subsystem in STAGES]
    return sum(count > 0 for count in counts) + _rounds(max(counts, default=0))


def _narrow(
    backend: str, subsystem: str, steps: Mapping[str, Sequence[Step]], answers: Mapping[str, str]
) -> Question | Found:
    """Halve what lies between the highest number that heals and the lowest above it that does not."""
    of_stage = steps[subsystem]
    good, bad = _between(subsystem, len(of_stage), answers)
    middle = (good + bad) // 2
    open_ones = [at for at in range(good + 1, bad) if f"{subsystem}:{at}" not in answers]
    if open_ones:
        closest = min(open_ones, key=lambda at: abs(at - middle))
        return _question(backend, subsystem, closest, steps, answers)
    return Found(
        backend=backend,
        subsystem=subsystem,
        number=bad,
        heals_at=good,
        steps=tuple(of_stage[good + 1 : bad + 1]),
    )


def _question(
    backend: str, subsystem: str, at: int, steps: Mapping[str, Sequence[Step]], answers: Mapping[str, str]
) -> Question:
    count = len(steps[subsystem])
    good, bad = _between(subsystem, count, answers)
    left = 1 + _rounds(count if at == ALL_OFF else max(1, (bad - good) // 2))
    return Question(
        backend=backend, subsystem=subsystem, max=at, steps=count, done=len(answers), of=len(answers) + left
    )


def _between(subsystem: str, count: int, answers: Mapping[str, str]) -> tuple[int, int]:
    """The highest number that heals and the lowest above it that does not, as far as the answers tell."""
    bad = min((at for at in range(count) if answers.get(f"{subsystem}:{at}") == BAD), default=count - 1)
    good = max((at for at in range(bad) if answers.get(f"{subsystem}:{at}") == GOOD), default=ALL_OFF)
    return good, bad


def _rounds(count: int) -> int:
    return math.ceil(math.log2(count)) if count > 1 else 0
