"""Certified scripts: each is run once more here, by an interpreter that cannot import aotidoctor."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from foundry.cases import Call, Kit
from foundry.registry import BY_NAME
from warm import forked, line
from warm_python import python

from aotidoctor.commands import diagnose_package
from aotidoctor.commands.repro.reduced_inputs import RANDOM, UNCHANGED, ZEROED, can_strip, copy_package
from aotidoctor.commands.repro.repro_script import KnownFailure, Repro
from aotidoctor.commands.repro.reproduce import reproduce
from aotidoctor.model.case import Options
from aotidoctor.model.report import Report
from aotidoctor.readers.package.constants import read_constants
from aotidoctor.runner.runner import Runner

pytestmark = pytest.mark.torch

SECONDS = 240
MOST_LINES = 40
# The script as it is, but with aotidoctor out of reach.
ALONE = "import runpy, sys; sys.modules['aotidoctor'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
# Case, exit status, words on stderr, what of the inputs is in the folder.
CERTIFIED = (
    ("dtype_float64", 1, "AssertionError: Tensor-likes are not close", "none of your values"),
    ("stride_transposed", 1, "AssertionError: Tensor-likes are not close", "none of your values"),
    ("tree_dict_order", 1, "AssertionError: Tensor-likes are not close", "none of your values"),
    ("shape_wider", 1, "AssertionError: Tensor-likes are not close", "none of your values"),
    ("kwarg_missing", 1, "kwarg keyword mismatch", "none of your values"),
    ("count_one_missing", 1, "expected inputs vector size to be 2, but got 1", "none of your values"),
    ("index_embedding_100", 1, "index out of bounds: 0 <= tmp2 < 100", "args[0][3]"),
    ("divide_by_zero", 1, "ZeroDivisionError", "args[3][4]"),
    ("assert_above", 1, "Expected u0 <= 16 but received 40", "args[1]"),
    ("nan_from_log", 1, "AssertionError: NaN or Inf in the result", "1 value of args[0]"),
    ("weights_on_disk", -11, "", "none of your values"),
    ("op_missing_cpp", 1, "Could not find schema for zoo::misbehave", "none"),
    ("op_throw_std", 1, "the index is beyond the vocabulary", "none of your values"),
    ("op_segv", -11, "", "none of your values"),
    ("op_exit3", 3, "", "none of your values"),
    ("artifact_no_so", 1, "File not found", "none"),
)
# One that dies is certified, and run once more, by an interpreter that was not started before it; one that raises is in
# test_run_writes_a_script_beside_its_report.
FRESH = ("op_segv",)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """The warm worker of the command line: a script needs no other start of torch."""
    yield line().runner
    line().runner.forget()


def diagnosed(call: Call, runner: Runner) -> Report:
    options = Options(setup=str(call.setup) if call.setup else None)
    return diagnose_package.diagnose(str(call.model), str(call.inputs), options, environ=os.environ, runner=runner)


def reproduced(report: Report, folder: Path, runner: Runner, *, keep_weights: bool = False) -> Repro:
    known = KnownFailure(signature=report.signature, diagnoses=report.diagnoses, findings=report.findings)
    return reproduce(report.case, known, folder, os.environ, keep_weights=keep_weights, runner=runner)


def run_alone(folder: Path, *, fresh: bool) -> subprocess.CompletedProcess[str]:
    if not fresh:
        return python(ALONE, folder / "repro.py", cwd="/")
    command = [sys.executable, "-c", ALONE, str(folder / "repro.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd="/", check=False)


def modules_of(script: str) -> set[str]:
    found = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in found if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in found if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def bytes_of_weights(report: Report) -> list[bytes]:
    case = report.case
    stored = read_constants(case.artifact, case.model, case.contract.constants, case.model.weights_location)
    found = [one.content.read_at(0, one.content.size) for one in stored.values() if one.content is not None]
    return [data for data in found if len(set(data)) > 8]


@pytest.mark.parametrize(("name", "status", "words", "inputs"), CERTIFIED, ids=[one[0] for one in CERTIFIED])
def test_a_certified_script_fails_alone_as_the_call_did(
    name: str, status: int, words: str, inputs: str, packages: Kit, case_dir: Path, runner: Runner
) -> None:
    report = diagnosed(BY_NAME[name].make(packages, case_dir), runner)
    folder = case_dir / "repro"
    with nullcontext() if name in FRESH else forked():
        made = reproduced(report, folder, runner)
    assert made.certified == f"same signature, {report.signature}", made
    assert inputs in made.inputs
    assert not (folder / "values.pt").exists()
    script = (folder / "repro.py").read_text()
    assert len(script.splitlines()) <= MOST_LINES
    assert modules_of(script) <= {"torch", "os", "pathlib", "runpy", "copy"}
    _is_clean(folder / "repro.py")
    weights = bytes_of_weights(report)
    kept = [path.name for path in folder.iterdir() for one in weights if one in path.read_bytes()]
    assert not kept, "weights of the user are in the folder"
    alone = run_alone(folder, fresh=name in FRESH)
    assert alone.returncode == status, alone.stderr
    assert words in alone.stderr


def _is_clean(script: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    done = subprocess.run([ruff, "check", "--isolated", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_fails_in_no_script_is_not_offered(packages: Kit, case_dir: Path, runner: Runner) -> None:
    # A wrong checksum of the debug file: torch loads and runs the package all the same.
    report = diagnosed(BY_NAME["artifact_crc_source"].make(packages, case_dir), runner)
    made = reproduced(report, case_dir / "repro", runner)
    assert not made.certified
    assert "does not fail in this way" in made.problem
    assert any("no failure" in one for one in made.tried)
    assert not (case_dir / "repro").exists()


def test_an_unsafe_archive_is_not_loaded(packages: Kit, case_dir: Path, runner: Runner) -> None:
    report = diagnosed(BY_NAME["artifact_absolute_path"].make(packages, case_dir), runner)
    made = reproduced(report, case_dir / "repro", runner)
    assert not made.tried
    assert "is not loaded" in made.problem


def test_weights_are_kept_where_asked(packages: Kit, case_dir: Path, runner: Runner) -> None:
    report = diagnosed(BY_NAME["index_embedding_100"].make(packages, case_dir), runner)
    with forked():
        made = reproduced(report, case_dir / "repro", runner, keep_weights=True)
    assert (bool(made.certified), made.weights) == (True, "kept")
    assert (case_dir / "repro/model.pt2").read_bytes() == Path(report.case.artifact.path).read_bytes()


@pytest.mark.parametrize("base", ["linear", "blob", "mmapped", "pickled"])
@pytest.mark.parametrize("level", [ZEROED, RANDOM])
def test_weights_are_taken_out_wherever_they_are(base: str, level: str, packages: Kit, tmp_path: Path) -> None:
    report = diagnose_package.inspect(str(packages.package(base)), Options(), environ=os.environ)
    assert can_strip(report.case) is None
    weights = bytes_of_weights(report)
    assert weights
    copy_package(report.case, tmp_path / "kept.pt2", UNCHANGED)
    copy_package(report.case, tmp_path / "stripped.pt2", level)
    assert all(one in (tmp_path / "kept.pt2").read_bytes() for one in weights)
    assert not any(one in (tmp_path / "stripped.pt2").read_bytes() for one in weights)
    again = diagnose_package.inspect(str(tmp_path / "stripped.pt2"), Options(), environ=os.environ)
    assert again.verdict == "healthy"
    assert again.case.model.weights_location == report.case.model.weights_location


def test_run_writes_a_script_beside_its_report(
    packages: Kit, case_dir: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = BY_NAME["count_one_missing"].make(packages, case_dir)
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor", "run", *call.arguments(), "--json", "--report", "repro:out"],
        capture_output=True, text=True, timeout=SECONDS, cwd=case_dir, check=False,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert f"certified: same signature, {report['signature']}" in done.stderr
    assert {path.name for path in (case_dir / "out").iterdir()} == {"repro.py", "README.md", "model.pt2"}

    (case_dir / "report.json").write_text(done.stdout)
    monkeypatch.chdir(case_dir)
    monkeypatch.setattr(
        importlib.import_module("aotidoctor.commands.repro.reproduce"), "start_runner", lambda _: nullcontext(runner)
    )
    with forked():
        again = line()("repro", *call.arguments(), "--from", "report.json", "-o", "out", "--json")
    assert again.returncode == 1, again.stderr
    assert "certified: same signature" in json.loads(again.stdout)["extra"]["repro"]

    (case_dir / "notes").mkdir()
    (case_dir / "notes/mine.txt").write_text("mine")
    refused = line()("repro", *call.arguments(), "--from", "report.json", "-o", "notes")
    assert refused.returncode == 2
    assert (case_dir / "notes/mine.txt").read_text() == "mine"
