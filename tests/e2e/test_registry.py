"""The tables of cases themselves: enough of them, all observed in plain PyTorch, none contradicted by what was seen."""

from __future__ import annotations

import json
from pathlib import Path

from foundry.cases import Case
from foundry.models import BY_NAME as MODELS
from foundry.registry import CASES, FAULTS, HEALTHY

from tests.every import every

RECORD = json.loads((Path(__file__).parent / "plain.json").read_text())
PLAYBOOKS = Path(__file__).parents[2] / "playbooks"


def test_there_are_enough_cases():
    assert len(FAULTS) >= 110
    assert len(HEALTHY) >= 30


def test_every_case_was_observed_and_no_record_is_stale():
    assert set(RECORD) == {case.name for case in CASES}


def test_every_case_is_made_from_a_model_that_exists():
    assert {case.base for case in CASES} <= set(MODELS)


def test_every_model_has_a_case_with_a_fault_or_a_control():
    assert {case.base for case in CASES} == set(MODELS)


@every("case", FAULTS, ids=lambda case: case.name)
def test_expected_causes_have_a_playbook(case: Case):
    assert [cause for cause in case.causes if not (PLAYBOOKS / f"{cause}.md").exists()] == []


# The program itself writes to its input: a second call gets another one, and the reference does the same.
WRITES_BY_DESIGN = {"ok_reference_mutation"}


@every("case", HEALTHY, ids=lambda case: case.name)
def test_healthy_cases_are_healthy_in_plain_pytorch(case: Case):
    seen = RECORD[case.name]
    if case.name in WRITES_BY_DESIGN:
        assert seen == {"plain": "returns, differs between calls", "reference": "same as reference"}
        return
    assert seen["plain"] == "ok" or seen["plain"].startswith("not tried")


@every("case", FAULTS, ids=lambda case: case.name)
def test_what_must_fail_is_a_fault_in_plain_pytorch(case: Case):
    """A silent fault shows against the exported program, or is a danger that plain PyTorch does not look for."""
    seen = RECORD[case.name]
    silent = seen["plain"] == "ok" and seen["reference"] == "same as reference"
    if silent and case.exits == (1,):
        assert case.name in SILENT_AND_RIGHT | FINER_THAN_THE_RECORD, seen


# Thousands of eps off, and still inside the tolerance that the record was made with.
FINER_THAN_THE_RECORD = frozenset({"wrong_decomposition"})
# They run and are right: what is wrong is what loading them does, or could do, to the machine.
SILENT_AND_RIGHT = frozenset(
    {"artifact_parent_path", "artifact_absolute_path", "artifact_symlink_member", "artifact_bomb"}
)
