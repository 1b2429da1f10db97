from __future__ import annotations

from pathlib import Path

import pytest

from aotidoctor.diagnosis.playbooks import (
    PlaybookError,
    check_prose,
    load_playbooks,
    parse_playbook,
    read_playbook,
    sections_of,
    split_head,
)

GOOD = """\
cause = "it"
stage = "run"
title = "t"
severity = "error"
weight = 599
confidence = 0.5
any_of = [{ code = "AD-RUN-001", kind = "raised" }]
looked_like = "l"
remedy = "r"
would_confirm = "w"
"""
PATH = Path("it.md")


def test_the_least_head_is_accepted():
    playbook = parse_playbook(GOOD, PATH)
    assert (playbook.cause, playbook.command, playbook.treatment, playbook.explains) == ("it", "", None, ())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('cause = "it"', 'cause = "other"', ["it.md", "cause", "'other'"]),
        ('stage = "run"', 'stage = "fun"', ["stage", "'fun'", "artifact"]),
        ("weight = 599", "weight = 100", ["weight", "100", "500..599"]),
        ("weight = 599", "weight = true", ["weight", "True"]),
        ("confidence = 0.5", "confidence = 2", ["confidence", "2", "0 to 1"]),
        ('severity = "error"', 'severity = "info"', ["severity", "'info'"]),
        ('"AD-RUN-001"', '"AD-FUN-1"', ["any_of[0]", "code", "AD-FUN-1"]),
        ('kind = "raised"', "kind = 3", ["any_of[0]", "kind", "3"]),
        ('title = "t"\n', "", ["title", "missing"]),
        ('title = "t"\n', 'title = "t"\nextra = 1\n', ["unknown key", "extra"]),
        ('any_of = [{ code = "AD-RUN-001", kind = "raised" }]\n', "", ["any_of", "match everything"]),
        ('title = "t"', "title = ", ["not TOML", "line 3"]),
        ('remedy = "r"', 'remedy = "r"\nexplains = "x"', ["explains", "list of strings"]),
    ],
)
def test_a_slip_is_named(old, new, words):
    assert old in GOOD
    with pytest.raises(PlaybookError) as error:
        parse_playbook(GOOD.replace(old, new), PATH)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("text", ["no fence", "+++\ncause = 1\n"])
def test_fences_are_needed(text):
    with pytest.raises(PlaybookError):
        split_head(text, "it.md")


def test_prose_is_checked(tmp_path):
    path = tmp_path / "it.md"
    path.write_text(f"+++\n{GOOD}+++\n\n## What happened\n\nx\n")
    playbook = read_playbook(path)
    assert sections_of(playbook)["What happened"] == "x"
    with pytest.raises(PlaybookError, match="headings"):
        check_prose(playbook)


def test_an_unreadable_file_is_named(tmp_path):
    path = tmp_path / "it.md"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PlaybookError, match=r"it\.md"):
        read_playbook(path)


def test_only_those_that_mention_a_code_are_parsed():
    found = {playbook.cause for playbook in load_playbooks(["AD-IN-010"])}
    assert "input-dtype" in found
    assert "artifact-corrupt" not in found


def test_nothing_to_match_needs_no_playbook():
    assert load_playbooks([]) == ()
