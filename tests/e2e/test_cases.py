"""Every case through the command line: the right cause first, the right exit status, one document, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from foundry.cases import Case, Kit
from foundry.registry import FAULTS, HEALTHY
from signatures import of_report, recorded
from warm import CommandLine

pytestmark = pytest.mark.torch

SECONDS = 240
SIGNATURES = recorded()
# One for each way in which the command can go is asked through the shell: healthy, nothing to run, unreadable inputs,
# treated, other answers each time, a file of the user that raises, a child that dies, a child without memory. So does
# each case that changes the environment.
IN_A_SHELL = frozenset((
    "ok_class_imported", "artifact_no_such_file", "file_not_there", "tree_dict_order", "random_dropout", "setup_raises",
    "op_abort", "memory_overflow",
))  # fmt: skip
EVIL = ("/tmp/aotidoctor_evil_absolute.txt", "/tmp/aotidoctor_evil_marker.txt")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """What the command said: exit status, the report, and what it left in its temporary directory."""

    status: int
    report: dict
    stderr: str
    left: list[str]

    def __repr__(self) -> str:
        found = [(one["cause"], one["status"], one["subject"], one["title"]) for one in self.report["diagnoses"]]
        seen = [(one["code"], one["severity"], one["subject"]) for one in self.report["findings"]]
        return f"exit {self.status}, {self.report['verdict']}\n{found}\n{seen}\nleft {self.left}\n{self.stderr[-1500:]}"


def ask(case: Case, kit: Kit, where: Path, line: CommandLine) -> Answer:
    """``aotidoctor run`` on the case: through the shell, as a user would type it, where that is the point."""
    call = case.make(kit, where)
    words = ["run", *call.arguments(), "--format", "json"]
    if call.env or case.name in IN_A_SHELL:
        temporary = where / "tmp"
        temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(temporary), **call.env}
        command = [sys.executable, "-m", "aotidoctor", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, env=environment, cwd=Path.cwd(), check=False
        )
        left = sorted(str(path.relative_to(temporary)) for path in temporary.rglob("*"))
    else:
        done = line(*words)
        left = line.left()
    try:
        report = json.loads(done.stdout)  # one document, or this raises
    except ValueError as error:
        pytest.fail(f"stdout is not one JSON document: {error}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return Answer(status=done.returncode, report=report, stderr=done.stderr, left=left)


def _named(report: dict, subject: str) -> bool:
    """Whether the first diagnosis, or the evidence it stands on, names the subject."""
    first = report["diagnoses"][0]
    evidence = [finding for finding in report["findings"] if finding["id"] in first["evidence"]]
    texts = [first["subject"], first["title"], *(one["subject"] for one in evidence)]
    texts += [one["observed"] for one in evidence]
    return any(subject in str(text) for text in texts if text)


def test_the_cases_for_the_shell_are_there() -> None:
    assert {case.name for case in (*FAULTS, *HEALTHY)} >= IN_A_SHELL


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_fault_is_named(case: Case, packages: Kit, case_dir: Path, command_line: CommandLine) -> None:
    answer = ask(case, packages, case_dir, command_line)
    causes = [diagnosis["cause"] for diagnosis in answer.report["diagnoses"]]
    assert answer.status in case.exits, answer
    if answer.status != 0:
        assert answer.report["verdict"] == "problem", answer
    # A warning may be a finding only; whatever is diagnosed must be right.
    if causes or answer.status != 0:
        assert causes[0] in case.causes, answer
        assert case.subject is None or _named(answer.report, case.subject), answer
        assert not case.proof or answer.report["diagnoses"][0]["status"] == "confirmed", answer
    known = SIGNATURES.get(case.name)
    if known is not None and causes[:1] == [known["cause"]]:
        assert of_report(answer.report) == {key: known[key] for key in ("exact", "family", "cause", "parts")}, answer
    assert answer.left == [], answer
    assert not [path for path in EVIL if os.path.exists(path)]


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.name)
def test_healthy_passes(case: Case, packages: Kit, case_dir: Path, command_line: CommandLine) -> None:
    answer = ask(case, packages, case_dir, command_line)
    assert answer.status == 0, answer
    assert answer.report["verdict"] == "healthy", answer
    assert answer.report["diagnoses"] == [], answer
    assert answer.left == [], answer
