"""Cases of names, types, dims and batches: exactly the expected findings, with their lines."""

from __future__ import annotations

import pytest

from tests.unit.triton import cases_spec, cases_tensors
from tests.unit.triton.harness import ServingCase, findings_of, loud, notes

CASES: tuple[ServingCase, ...] = (*cases_spec.CASES, *cases_tensors.CASES)
OWN = {*(f"R{number}" for number in (*range(9, 29), 31, 32, 33))}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: ServingCase, tmp_path, monkeypatch) -> None:
    found = findings_of(case, tmp_path, monkeypatch)
    assert loud(found) == sorted(case.expected), [(item.code, item.kind, item.message) for item in found]
    assert set(case.notes) <= notes(found)
    for item in found:
        assert item.message
        assert item.facts["remedy"]


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def test_every_own_rule_has_a_case_that_triggers_it() -> None:
    seen = {label.partition(":")[0] for case in CASES for label in (*case.expected, *case.notes)}
    assert seen >= OWN


def test_there_are_healthy_ones() -> None:
    assert sum(case.healthy for case in CASES) >= 20
