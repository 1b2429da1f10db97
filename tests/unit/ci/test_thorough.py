"""The list of tests that ``make test`` leaves to ``make test-all``, and that ``.ci/run`` runs them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import _mark_thorough

TESTS = Path(__file__).parents[2]
LINES = [line for line in (TESTS / "thorough.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def item(name: str, marks: list[str]) -> SimpleNamespace:
    return SimpleNamespace(nodeid=f"tests/{name}", add_marker=lambda mark: marks.append(f"{name} {mark.name}"))


def test_each_line_names_a_test_and_its_twin():
    assert sorted(set(LINES)) == LINES
    for line in LINES:
        name, _, twin = line.rpartition(" = ")
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (TESTS / file).read_text(encoding="utf-8"), line
        assert twin, line


def test_what_is_listed_is_marked_and_what_is_gone_is_an_error():
    file = LINES[0].partition("::")[0]
    names = [name for line in LINES if (name := line.rpartition(" = ")[0]).startswith(file)]
    marks: list[str] = []
    _mark_thorough([item(name, marks) for name in (*names, f"{file}::test_another")], whole_files=True)
    assert marks == [f"{name} thorough" for name in names]
    with pytest.raises(pytest.UsageError, match=r"names what is no test: \S+::"):
        _mark_thorough([item(f"{file}::test_another", marks)], whole_files=True)
    # One test that was asked for by its name says nothing of the others.
    _mark_thorough([item(f"{file}::test_another", marks)], whole_files=False)


def test_what_a_change_must_pass_leaves_none_out():
    assert "make test-all\n" in (TESTS.parent / ".ci" / "run").read_text(encoding="utf-8")
