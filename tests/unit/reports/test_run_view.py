"""How runs ended, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.jobs import Job
from aotidoctor.model.run import ChildError, Exited, NotStarted, OutOfMemory, Request, Signalled, TimedOut
from aotidoctor.reports.page import run_page
from tests.unit.reports import builders


@pytest.mark.parametrize(
    ("ending", "text", "failed"),
    [
        (Exited(code=0, done=True), "ok", False),
        (Exited(code=0, done=False), "exit 0 without a result", True),
        (Exited(code=3, done=True), "exit 3", True),
        (Signalled(signal=6, name="SIGABRT"), "SIGABRT", True),
        (Signalled(signal=11, name="SIGSEGV", core_dumped=True), "SIGSEGV, core dumped", True),
        (TimedOut(limit=90.0), "no end within 90.0 s", True),
        (OutOfMemory(reason="above\n2 GiB"), "out of memory (above 2 GiB)", True),
        (NotStarted(reason="no python"), "not started (no python)", True),
    ],
)
def test_endings(ending, text, failed):
    outcome = builders.outcome(ending=ending)
    assert run_page.ending_text(ending) == run_page.run_ending(outcome) == text
    assert run_page.outcome_failed(outcome) is failed


def test_what_was_raised_goes_before_how_it_ended():
    outcome = builders.outcome(error=ChildError(type="ValueError", message="no\nway"), stderr_tail="later\n")
    assert run_page.run_ending(outcome) == "raised ValueError"
    assert run_page.outcome_failed(outcome)
    assert run_page.last_words(outcome) == "ValueError: no way"
    assert run_page.last_words(replace(outcome, error=None)) == "later"
    assert run_page.last_words(builders.outcome()) == ""


@pytest.mark.parametrize(("code", "text"), [(0, "ok"), (2, "exit 2")])
def test_a_program_of_the_user_has_no_marker_at_its_end(code, text):
    request = Request(probe="watch", job="watch", payload=Job())
    assert run_page.run_ending(builders.outcome(ending=Exited(code=code, done=False), request=request)) == text


def test_settings_as_a_shell_writes_them():
    assert run_page.env_text({"A": "1", "B": "two words", "C": None}) == "A=1 B='two words' -u C"


@pytest.mark.parametrize(
    ("effect", "env", "text"), [(None, {}, ""), (None, {"A": "1"}, "unknown"), (True, {}, "yes"), (False, {}, "no")]
)
def test_whether_a_setting_acted(effect, env, text):
    request = builders.request(env=env)
    assert run_page.took_effect(builders.outcome(request=request, took_effect=effect)) == text
