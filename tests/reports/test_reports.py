"""Every rebuilt report is answered with its truth."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from tests.e2e.foundry.place import cache_dir
from tests.e2e.warm import line
from tests.reports.cases import REPORTS
from tests.reports.trial import answers, by_shell

RIGHT = [report for report in REPORTS if report.right]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ to compile packages with"),
]


@pytest.fixture(autouse=True)
def kept_compiles(monkeypatch):
    """What the program itself compiles is kept by its content, as in the end-to-end tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_dir() / "xdg"))


def warm(words, folder):
    if words[0] == "watch":
        # It ends the process that it is called in.
        return by_shell(words, folder)
    done = line()(*words, cwd=folder)
    return str(done.returncode), done.stdout


@pytest.mark.parametrize("report", RIGHT, ids=lambda one: "-".join((one.name, *one.arguments)))
def test_answers_are_the_truth(report):
    assert [(question.words, wrong) for question, wrong in answers(report, warm) if wrong] == []
