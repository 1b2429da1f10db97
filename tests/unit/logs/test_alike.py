"""The words of a text as the last witness: a linear table, asked where no rule is sure, and told with its words."""

from __future__ import annotations

from unittest import mock

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs import word_model

NAMES = ("cuda-launch", "healthy", "other", "tmpdir")


def table(**says):
    """Of each word what it says of each of ``NAMES``, in hundredths."""
    entries = {}
    for word, told in says.items():
        pairs = [(NAMES.index(name.replace("_", "-")), said) for name, said in told.items()]
        entries[word_model.number(word)] = (16, pairs)
    return word_model.unpack_table(word_model.pack_table(NAMES, 0.01, entries))


def causes(text, words):
    with mock.patch.object(word_model, "words", return_value=words):
        _, diagnoses, reading = classify_text(text.encode(), "log")
    return [(one.cause, one.confidence) for one in diagnoses], reading


def test_a_table_says_after_it_was_packed_what_it_said_before():
    made = table(zorble={"tmpdir": 90, "other": -20}, frob={"cuda_launch": 33})
    assert made.at("unknown") == -1
    every, said = word_model.scores({"zorble": 1.0, "nobody": 1.0}, made)
    assert every == pytest.approx({"tmpdir": 0.9, "other": -0.2, "cuda-launch": 0.0, "healthy": 0.0})
    assert said["tmpdir"] == pytest.approx({"zorble": 0.9})


def test_where_no_rule_knows_it_the_words_speak_and_are_named():
    found, reading = causes("OddError: zorble frobs in torch", table(zorble={"tmpdir": 90}))
    [(cause, sure)] = found
    assert (cause, 0.3 <= sure < 0.5) == ("tmpdir", True)
    assert "`zorble`" in str(reading.matches[0].facts["alike"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        # Little speaks for it; as much speaks for another one; it is another program's; nothing is a sign of torch.
        ("OddError: zorble in torch", {"tmpdir": 30}),
        ("OddError: zorble in torch", {"tmpdir": 70, "cuda_launch": 68}),
        ("OddError: zorble in torch", {"tmpdir": 70, "other": 90}),
        ("OddError: zorble in the cellar", {"tmpdir": 90}),
    ],
)
def test_words_that_do_not_speak_clearly_say_nothing(text, says):
    found, reading = causes(text, table(zorble=says))
    assert found == []
    assert reading.unknown


def test_a_log_without_a_failure_is_not_asked_for_its_words():
    with mock.patch.object(word_model, "words", side_effect=AssertionError):
        assert classify_text(b"torch 2.13 loaded\nstep 1: loss 0.3\n", "log")[1] == ()


def test_what_a_message_says_by_itself_is_not_overruled():
    text = "RuntimeError: CUDA error: no kernel image is available for execution on the device\nzorble"
    assert causes(text, table(zorble={"tmpdir": 95}))[0][0][0] == "gpu-arch-mismatch"


def test_words_in_passing_give_way_to_the_words_as_a_whole():
    text = "RuntimeError: torch zorble: wrong dtype expected int64"
    [(weak, sure)] = causes(text, table(zorble={"tmpdir": 1}))[0]
    assert weak != "tmpdir"
    assert sure <= 0.45
    assert [cause for cause, _ in causes(text, table(zorble={"tmpdir": 95}))[0]] == ["tmpdir", weak]


def test_a_fault_that_any_program_may_have_is_left_alone_where_the_words_are_anothers():
    text = 'Undefined symbols for architecture arm64:\n  "_ZORBLE", referenced from:\nld: symbol(s) not found'
    assert causes(text, table(zorble={"tmpdir": 1}))[0]
    assert causes(text, table(zorble={"other": 95}))[0] == []


def test_of_a_long_text_the_first_lines_and_the_last_are_read():
    words = word_model.weigh_words([f"first{'abc'[at % 3]} word" if at < 90 else "lasting error" for at in range(100)])
    assert {"lasting", "firsta"} <= set(words)
    assert words["lasting"] > words["firsta"]


def test_the_table_of_the_release_is_learnt_from_texts():
    pytest.importorskip("numpy")
    from tests.corpus.learn import fit

    learnt = [("zorble went wrong", ("tmpdir",)), ("frob broke at once", ("other",))] * 4
    every, _ = word_model.scores(
        word_model.weigh_words(["it went wrong: zorble"]), word_model.unpack_table(fit(learnt))
    )
    assert max(every, key=every.get) == "tmpdir"
    assert set(word_model.NO_CAUSE) < set(word_model.words().names)
