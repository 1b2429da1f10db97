"""Known issues are shown on their own words, and on no others."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs.known import known_issue, known_issues, read_known
from aotidoctor.logs.patterns import PatternError

KNOWN = known_issues()


def test_there_are_many_each_once_with_an_address():
    assert len({issue.issue for issue in KNOWN}) == len(KNOWN) >= 60
    assert all(issue.url.startswith("https://") for issue in KNOWN)


@pytest.mark.parametrize("issue", KNOWN, ids=lambda issue: issue.issue)
def test_its_words_show_it(issue):
    findings, diagnoses, _ = classify_text(f"RuntimeError: {' ... '.join(issue.words)}\n".encode(), "log")
    shown = [item.facts.get("known_issue") for item in findings]
    assert issue.issue in shown
    assert diagnoses[0].cause == issue.cause


def test_half_of_its_words_do_not():
    split = [issue for issue in KNOWN if len(issue.words) > 1]
    assert split
    assert [issue.issue for issue in split if known_issue(issue.words[0], issue.cause) == issue] == []


def test_the_release_of_a_pattern_is_not_shown_as_the_users():
    findings, _, _ = classify_text(b"torch._inductor.exc.MissingOperatorWithoutDecomp: missing lowering\n", "log")
    assert findings[0].facts["source"] == "torch/_inductor/exc.py"


@pytest.mark.parametrize(
    "text",
    [
        "[[known]\n",
        "[[known]]\nissue = 'x#1'\n",
        "[[known]]\nissue='x#1'\nurl='https://x'\nwords=['short']\n",
        "other = 1\n",
    ],
)
def test_a_broken_block_is_refused(text):
    with pytest.raises(PatternError):
        read_known("cause", f"```toml known\n{text}```\n")
