"""The search for the compiler's wrong step, against a compiler that is known to be wrong in one place."""

from __future__ import annotations

import pytest

from aotidoctor.localize.bisection import (
    ALL_OFF,
    NO_PASSES,
    PASSES,
    BisectionStep,
    StepNotFound,
    WrongStep,
    most_steps,
    next_step,
)
from aotidoctor.model.answers import CompilerStep


def steps(**counts):
    return {name: tuple(CompilerStep(name=f"{name}-{at}") for at in range(count)) for name, count in counts.items()}


def search(of, answer, answers=None):
    """Ask until it is found; the result, and the questions in order."""
    known, asked = dict(answers or {}), []
    while isinstance(step := next_step(of, known), BisectionStep):
        asked.append((step.subsystem, step.max))
        known[step.key] = answer(step.subsystem, step.max)
        assert len(asked) < 60
    return step, asked


def wrong(subsystem, number, *, broken=()):
    """Wrong where step ``number`` of ``subsystem`` is on; ``broken`` maxima do not compile."""

    def answer(asked, at):
        if (asked, at) in broken:
            return "failed"
        return "good" if asked == subsystem and at < number else "bad"

    return answer


@pytest.mark.parametrize("count", [1, 2, 3, 10, 40])
def test_every_place_is_found_with_few_questions(count):
    for number in range(count):
        of = steps(lowerings=count)
        found, asked = search(of, wrong("lowerings", number))
        assert isinstance(found, WrongStep)
        assert (found.number, found.heals_at) == (number, number - 1)
        assert [step.name for step in found.steps] == [f"lowerings-{number}"]
        assert len(asked) <= most_steps(of) + 1


def test_the_stages_are_asked_from_the_last_to_the_first():
    of = steps(lowerings=4, post_grad_passes=3, joint_graph_passes=2, decomposition=5, pre_grad_passes=1)
    found, asked = search(of, wrong("decomposition", 2))
    assert (found.subsystem, found.backend, found.number) == ("decomposition", "aot_eager_decomp_partition", 2)
    assert [name for name, at in asked if at == ALL_OFF] == [
        "lowerings",
        "post_grad_passes",
        "joint_graph_passes",
        "decomposition",
    ]


def test_a_later_stage_that_heals_is_to_blame_although_an_earlier_one_heals_too():
    def answer(subsystem, at):
        return "good" if subsystem == "decomposition" or at < 1 else "bad"

    found, asked = search(steps(lowerings=4, decomposition=4), answer)
    assert (found.subsystem, found.number) == ("lowerings", 1)
    assert all(name == "lowerings" for name, _ in asked)


def test_a_stage_without_steps_is_not_asked():
    result, asked = search(steps(lowerings=0, post_grad_passes=2), lambda subsystem, at: "bad")
    assert isinstance(result, StepNotFound)
    assert asked == [("post_grad_passes", ALL_OFF)]


def test_what_cannot_be_turned_off_is_told():
    result, _ = search(
        steps(lowerings=2, decomposition=2), lambda subsystem, at: "failed" if subsystem == "decomposition" else "bad"
    )
    assert result == StepNotFound(tried=("lowerings",), failed=("decomposition",))


def test_a_question_that_fails_is_asked_beside():
    broken = {("lowerings", 4), ("lowerings", 5)}
    found, asked = search(steps(lowerings=10), wrong("lowerings", 7, broken=broken))
    assert (found.number, len(found.steps)) == (7, 1)
    assert ("lowerings", 3) in asked or ("lowerings", 6) in asked


def test_where_all_between_fails_each_of_them_is_suspected():
    broken = {("lowerings", at) for at in (3, 4, 5)}
    found, _ = search(steps(lowerings=8), wrong("lowerings", 5, broken=broken))
    assert (found.heals_at, found.number) == (2, 6)
    assert [step.name for step in found.steps] == [f"lowerings-{at}" for at in (3, 4, 5, 6)]


def test_what_was_answered_is_not_asked_again():
    of = steps(lowerings=16)
    _, all_asked = search(of, wrong("lowerings", 11))
    known = {f"{name}:{at}": wrong("lowerings", 11)(name, at) for name, at in all_asked[:3]}
    found, asked = search(of, wrong("lowerings", 11), known)
    assert found.number == 11
    assert asked == all_asked[3:]


STEPS = steps(lowerings=4, post_grad_passes=3, joint_graph_passes=2, decomposition=5, pre_grad_passes=1)


def guided(answer, *, decomposed):
    """The result, and the questions that turn a whole stage off."""
    known, asked = {}, []
    while isinstance(step := next_step(STEPS, known, decomposed=decomposed), BisectionStep):
        asked.append((step.subsystem, step.max))
        known[step.key] = answer(step.subsystem, step.max)
        assert len(asked) < 60
    return step, [name for name, at in asked if at == ALL_OFF]


def test_where_the_decomposed_program_is_wrong_the_search_starts_with_the_decompositions():
    found, asked = guided(wrong("decomposition", 2), decomposed=False)
    assert (found.subsystem, found.number, asked) == ("decomposition", 2, ["decomposition"])


@pytest.mark.parametrize("passes", PASSES)
def test_where_all_passes_off_heal_only_passes_are_asked(passes):
    def answer(subsystem, at):
        return "good" if subsystem == NO_PASSES else wrong(passes, 0)(subsystem, at)

    found, asked = guided(answer, decomposed=True)
    assert (found.subsystem, found.number) == (passes, 0)
    assert asked == [NO_PASSES, *PASSES[: PASSES.index(passes) + 1]]


def test_where_passes_are_right_none_of_them_is_asked_alone():
    found, asked = guided(wrong("lowerings", 3), decomposed=True)
    assert (found.subsystem, found.number, asked) == ("lowerings", 3, [NO_PASSES, "lowerings"])
    nowhere, asked = guided(lambda *_: "bad", decomposed=True)
    assert asked == [NO_PASSES, "lowerings", "decomposition"]
    assert set(nowhere.tried) == {*PASSES, "lowerings", "decomposition"}


def test_where_the_passes_cannot_be_turned_off_together_each_is_asked():
    found, asked = guided(wrong("pre_grad_passes", 0, broken={(NO_PASSES, ALL_OFF)}), decomposed=True)
    assert found.subsystem == "pre_grad_passes"
    assert asked == [NO_PASSES, "lowerings", *PASSES]


def test_a_question_tells_how_far_it_is():
    first = next_step(steps(lowerings=8), {})
    assert (first.done, first.max, first.of) == (0, ALL_OFF, 4)
    second = next_step(steps(lowerings=8), {"lowerings:-1": "good"})
    assert (second.done, second.subsystem) == (1, "lowerings")
    assert second.of >= 3
