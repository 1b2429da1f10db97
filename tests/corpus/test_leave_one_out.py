"""The measure of what would be said of unseen texts: it leaves out what one text alone needs, and nothing else."""

from __future__ import annotations

import re

import pytest

from tests.corpus.kin import Known, load
from tests.corpus.leave_one_out import FILES, outcome
from tests.corpus.own_rules import rules_of
from tests.corpus.regex_branches import branches, without


@pytest.mark.parametrize(
    ("regex", "parts"),
    [
        ("abc", {"abc"}),
        ("ab|c[|]d", {"ab", "c[|]d"}),
        ("a(?:b|c(?i:d|e))f", {"a(?:b|c(?i:d|e))f", "b", "c(?i:d|e)", "d", "e"}),
        (r"(?P<x>a\||b)(?P=x)(?<!q|r)", {r"(?P<x>a\||b)(?P=x)(?<!q|r)", r"a\|", "b"}),
        ("a(?!b)", {"a(?!b)", "b"}),
    ],
)
def test_every_alternative_is_found_once(regex, parts):
    found = [regex[slice(*branch.span)] for branch in branches(regex)]
    assert sorted(found) == sorted(parts)


def test_an_expression_without_some_of_its_alternatives():
    regex = "x(?:ab|cd(?:e|f)|g)"
    spans = {regex[slice(*branch.span)]: branch.span for branch in branches(regex)}
    less = re.compile(without(regex, [spans["cd(?:e|f)"], spans["f"], spans["ab"]]))
    assert [bool(less.search(text)) for text in ("xab", "xcde", "xcdf", "xg")] == [False, False, False, True]


def text(name: str, symptom: str, kin: int) -> Known:
    return Known(name, symptom, "failing", ("cuda-graph-capture",), kin, is_evidence=True, is_asked=True)


def test_what_one_text_alone_needs_is_left_out_for_it():
    told = "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    alone = [text("one", told, 0)]
    again = [*alone, text("two", f"another program\n{told}", 1)]
    copied = [*alone, text("two", told, 0)]
    assert outcome(alone[0], rules_of(alone))[0] != "right"
    assert outcome(copied[0], rules_of(copied))[0] != "right"
    assert outcome(again[0], rules_of(again))[0] == "right"


def test_texts_of_one_thread_are_kin():
    texts = {text.id: text for text in load(FILES)}
    assert texts["pytorch-105217a"].kin == texts["pytorch-105217c"].kin
    assert texts["nunchaku-27"].kin != texts["scube-7"].kin
