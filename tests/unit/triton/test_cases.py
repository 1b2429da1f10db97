"""Every case of every family: exactly the expected findings, with their lines."""

from __future__ import annotations

import pytest

from aotidoctor.triton.rules import RULES
from tests.unit.triton import cases_config, cases_serving
from tests.unit.triton.harness import ServingCase, findings_of, loud, notes

CASES: tuple[ServingCase, ...] = (*cases_config.CASES, *cases_serving.CASES)
FAMILIES = ("config", "scheduling", "instances", "parameters", "rest")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: ServingCase, tmp_path, monkeypatch) -> None:
    found = findings_of(case, tmp_path, monkeypatch)
    assert loud(found) == sorted(case.expected), [(item.code, item.message) for item in found]
    assert set(case.notes) <= notes(found)
    for item in found:
        assert item.message
        assert item.facts["remedy"]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.family in FAMILIES], ids=lambda rule: rule.id)
def test_every_rule_is_met_and_is_not(rule) -> None:
    """Healthy cases go through all rules, so one that spoke always would show there."""
    said = [{item.partition(":")[0] for item in (*case.expected, *case.notes)} for case in CASES]
    assert any(rule.id in ids for ids in said)
    assert any(rule.id not in ids for ids in said)


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def test_there_are_healthy_ones() -> None:
    assert sum(case.healthy for case in CASES) >= 10


def test_every_rule_of_the_list_is_there() -> None:
    assert [rule.id for rule in RULES] == [f"R{number}" for number in range(1, 54)]
