"""What is no form of a failure and yet speaks of one: asked for at the end, and only where nothing went well after it."""

from __future__ import annotations

import pytest

from tests.unit.logs.reading import read

NEWS = "".join(f"step {number}: pump {number} turns\n" for number in range(30))


@pytest.mark.parametrize("complaint", ["the pump could not be opened", "cannot find pump 3", "pump 3: access denied"])
def test_a_plain_word_counts_in_any_short_log(complaint):
    (event,) = read(f"{NEWS}{complaint}\n{NEWS}").unknown
    assert (event.level, event.text.splitlines()[0]) == ("error", complaint)


@pytest.mark.parametrize("complaint", ["pump 3 is not supported", "shapes mismatch", "tensor([1.0, nan])", "False"])
def test_a_weak_word_counts_at_the_end(complaint):
    assert read(f"{NEWS}{complaint}\n").unknown
    assert not read(f"{NEWS}{complaint}\n{NEWS}").unknown


@pytest.mark.parametrize("complaint", ["wrong pump", "pump 3 no longer turns", "the cellar must be dry"])
def test_a_word_of_everyday_counts_where_somebody_chose_the_lines(complaint):
    assert read(f"{complaint}\n").unknown
    assert not read(f"{NEWS}{complaint}\n").unknown


@pytest.mark.parametrize("nothing", ["", "\n", "\n\n  \n"])
def test_nothing_is_no_failure(nothing):
    assert not read(nothing).unknown


def test_what_went_well_afterwards_did():
    assert not read(f"{NEWS}pump 3 could not be opened\npump 4 opened: success\n").unknown
    assert read("pump 4 opened: success\npump 3 could not be opened\n").unknown


def test_a_success_that_tells_of_a_failure_is_none():
    (event,) = read("pump 3 could not be opened\nfinished with status 'error'\n").unknown
    assert (event.level, event.text) == ("error", "finished with status 'error'")


def test_news_warnings_and_what_continues_them_do_not_count():
    assert not read("[INFO] pump 3 could not be opened\n[INFO] next\n").unknown
    assert not read("Warning: the cellar\n  could not be opened\nnext\n").unknown


def test_a_warning_alone_is_what_somebody_asks_about():
    assert read("PUMP WARN cellar could not be opened\n").unknown
    assert not read("[INFO] pump 3 could not be opened\n").unknown


@pytest.mark.parametrize(
    "line", ["val_loss improved from inf to 0.3", "clamp(x, -inf, 3)", "loss: 0.3, nan_policy=omit"]
)
def test_a_number_that_is_none_may_be_one_of_everyday(line):
    assert not read(f"{line}\n").unknown
