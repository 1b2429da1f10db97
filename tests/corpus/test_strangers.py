"""Texts of public trackers as they were pasted, labelled before they were read: failing ones, other programs', healthy.

The first tries are in README.md; here they must stay right.
"""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from tests.corpus.corpus import texts

STRANGERS = texts("strangers.jsonl")
FAILING = tuple(text for text in STRANGERS if text.half == "failing")
OTHERS = tuple(text for text in STRANGERS if text.half in ("other", "unknown"))
HEALTHY = tuple(text for text in STRANGERS if text.half == "healthy")
# Its cause is that of a program above the package, and the text shows the place below.
SILENT = {"et-dup-constant-index"}


@pytest.mark.parametrize("text", FAILING, ids=lambda text: text.id)
def test_a_failing_text_gets_its_cause_first(text):
    _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    if text.id in SILENT:
        assert diagnoses == ()
        assert reading.unknown
    else:
        assert diagnoses[0].cause in (text.cause, *text.shared)


@pytest.mark.parametrize("text", OTHERS, ids=lambda text: text.id)
def test_what_another_program_says_is_a_failure_without_a_cause(text):
    _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    assert diagnoses == () or diagnoses[0].cause in text.shared
    assert diagnoses or reading.unknown


@pytest.mark.parametrize("text", HEALTHY, ids=lambda text: text.id)
def test_a_healthy_text_fails_nowhere(text):
    _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    assert diagnoses == ()
    assert reading.unknown == ()


def test_there_are_enough_of_each_kind():
    assert len(FAILING) > 100
    assert len(OTHERS) > 30
    assert len(HEALTHY) > 30
