"""The size of an answer, and what is kept when there is too much."""

from __future__ import annotations

import json
import signal
import threading

import pytest

from aotidoctor.commands.mcp import MOST_ANSWER_CHARS, bounded_answer, bounded_page
from aotidoctor.runner.own_command import RunningCommand


def finding(number, severity="info", text="x"):
    return {"id": f"E{number}", "code": "AD-X", "severity": severity, "observed": text, "facts": {}}


def test_what_a_cause_rests_on_is_kept():
    cited = finding(5000, "info", "y" * 50)
    document = {
        "verdict": "problem",
        "diagnoses": [{"cause": "input-dtype", "evidence": ["E5000", "R1"]}],
        "findings": [*(finding(number, "warn", "z" * 5000) for number in range(4000)), cited],
        "runs": [{"id": "R1", "probe": "plain_run", "ending": "signalled", "stdout_tail": "s" * 10**6}],
        "not_checked": [{"name": "a", "reason": "b", "moot": True}, {"name": "c", "reason": "d" * 10**5}],
    }
    made = bounded_answer(document, 1)
    assert len(json.dumps(made, ensure_ascii=False)) <= MOST_ANSWER_CHARS
    assert (made["cause"], made["exit_status"]) == ("input-dtype", 1)
    assert made["findings"][0]["id"] == "E5000"
    assert made["evidence"] == [*(item["id"] for item in made["findings"]), "R1"]
    assert made["omitted"]["findings"] == 4001 - len(made["findings"])
    assert [item["name"] for item in made["not_checked"]] == ["c"]


@pytest.mark.parametrize("document", [{}, {"diagnoses": 3, "findings": [1, None], "contract": [], "compat": "x"}])
def test_other_json_is_no_error(document):
    assert bounded_answer(document, 0)["evidence"] == []


def test_a_document_of_one_huge_part_is_cut():
    made = bounded_answer({"verdict": "healthy", "extra": {str(number): "x" * 1000 for number in range(1000)}}, 0)
    assert len(json.dumps(made)) <= MOST_ANSWER_CHARS
    assert len(json.dumps(bounded_page({"text": "x" * 10**7}))) <= MOST_ANSWER_CHARS


def test_a_command_ends_when_its_time_is_up(tmp_path):
    command = RunningCommand(["classify", str(_pipe(tmp_path)), "--json"], cwd=str(tmp_path), seconds=0.5, most=1 << 20)
    done = command.run()
    assert done.late
    assert done.status != 0


def test_a_command_can_be_stopped_from_outside(tmp_path):
    command = RunningCommand(["classify", str(_pipe(tmp_path)), "--json"], cwd=str(tmp_path), seconds=300, most=1 << 20)
    timer = threading.Timer(0.5, command.stop)
    timer.start()
    assert command.run().status in (130, 143, -signal.SIGTERM)
    timer.join()
    assert command.run().status == -signal.SIGTERM


def _pipe(folder):
    """A log that nobody ever writes."""
    import os

    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def test_too_much_output_is_none(tmp_path):
    done = RunningCommand(["schema"], cwd=str(tmp_path), seconds=60, most=100).run()
    assert done.stdout is None
