"""Exported programs, healthy and broken, as the child judges them, held against PyTorch's own verifier."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest
from programs.cases import CASES

from aotidoctor.commands.verify import VerifyRequest, verify
from aotidoctor.model.case import Options
from aotidoctor.model.errors import UsageError
from aotidoctor.model.evidence import FileSource, Severity
from aotidoctor.program.rules import BY_CODE, RULES
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.json.schema import schema
from aotidoctor.reports.text import exit_status
from tests.every import every

HERE = Path(__file__).parent
JUDGE = HERE / "programs" / "judge.py"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="session")
def folder(made_once):
    """The archives and what was said of every program."""
    return made_once("programs", "results.json", JUDGE)


@pytest.fixture(scope="session")
def results(folder):
    return json.loads((folder / "results.json").read_text())


def spoken(result, *, notes: bool) -> set[str]:
    """``G03 operator-kind`` of every record that is (or is not) a note."""
    return {
        f"{item['code'].removeprefix('VERIFY-')} {item['kind']}"
        for item in result["records"]
        if (BY_CODE[item["code"]].severities[item["kind"]] is Severity.INFO) is notes
    }


IDS = [f"{case.source}-{case.name}-{at}" for at, case in enumerate(CASES)]


class TestProgram:
    @every("at", range(len(CASES)), ids=IDS)
    def test_breaks_these_rules_and_no_others(self, at, results):
        assert spoken(results[at], notes=False) == set(CASES[at].expected)

    @every("at", range(len(CASES)), ids=IDS)
    def test_has_its_notes(self, at, results):
        assert set(CASES[at].notes) <= spoken(results[at], notes=True)

    @every("at", range(len(CASES)), ids=IDS)
    def test_agrees_with_pytorchs_verifier(self, at, results):
        result = results[at]
        assert (result["passes"] is not None) is CASES[at].loads
        if result["passes"] is not None:
            broken = any(item["code"].startswith(("VERIFY-G", "VERIFY-S")) for item in result["records"])
            assert result["passes"] is not broken
            assert result["verifier"] == ("passes" if result["passes"] else "refuses")

    @every("at", range(len(CASES)), ids=IDS)
    def test_names_the_node(self, at, results):
        about = CASES[at].about
        loud = [item for item in results[at]["records"] if spoken({"records": [item]}, notes=False)]
        assert about is None or about in (loud[0]["node"], loud[0]["target"])

    @every("at", range(len(CASES)), ids=IDS)
    def test_no_check_failed_by_itself(self, at, results):
        assert not [reason for reason in results[at]["skipped"].values() if "failed here" in reason]


def test_there_are_enough_of_them():
    assert len({case.name for case in CASES}) >= 40
    assert sum(1 for case in CASES if not case.expected) >= 12


def test_every_kind_has_a_case_that_triggers_it():
    named = {name for case in CASES for name in (*case.expected, *case.notes)}
    kinds = {f"{rule.code.removeprefix('VERIFY-')} {kind}" for rule in RULES for kind in rule.severities}
    # The set-up is not the program's: it has a test of its own below. Functions that raise are in test_try_remedies; of
    # the others tests/reports has the programs.
    raised = {"L07 function", "L07 model", "L07 export"}
    assert kinds - named - raised == {"L06 setup", "A12 mutated-constant", "A12 not-compiled", "A13 merged"}


def test_every_kind_has_a_case_that_must_not(results):
    kinds = {f"{rule.code.removeprefix('VERIFY-')} {kind}" for rule in RULES for kind in rule.severities}
    quiet = [spoken(result, notes=False) | spoken(result, notes=True) for result in results]
    assert not [kind for kind in kinds if all(kind in found for found in quiet)]


def test_all_violations_are_told_where_torch_tells_one(results):
    at = next(at for at, case in enumerate(CASES) if case.name == "several")
    assert len(spoken(results[at], notes=False)) == 5
    assert "not functional" in results[at]["verifier_says"]


def test_the_source_line_is_the_users(results):
    at = next(at for at, case in enumerate(CASES) if case.name == "written")
    place = results[at]["records"][0]["where"]
    assert place["file"].endswith("broken.py")
    assert place["text"] == "x[0].add_(1)"


def ask(runner, program, **more):
    options = Options(setup=more.pop("setup", None), timeout=120.0)
    return verify(VerifyRequest(program=str(program), options=options, **more), environ=os.environ, runner=runner)


class TestReport:
    def test_a_healthy_program(self, runner, folder):
        report = ask(runner, folder / "as_saved.pt2")
        assert (report.verdict, exit_status(report, "error")) == ("healthy", 0)
        assert report.extra["verifier"] == "passes"

    def test_a_broken_program(self, runner, folder):
        report = ask(runner, folder / "not_functional.pt2")
        first = report.diagnoses[0]
        assert (first.cause, first.subject, exit_status(report, "error")) == ("export-unsupported", "add", 1)
        assert first.looked_like.startswith("SpecViolationError: operator 'aten.add_.Tensor' is not functional")
        assert isinstance(report.findings[0].source, FileSource)
        assert report.findings[0].source.file.endswith("healthy.py")

    def test_the_report_fits_the_schema(self, runner, folder):
        jsonschema = pytest.importorskip("jsonschema")
        report = ask(runner, folder / "weight_renamed.pt2")
        jsonschema.validate(json.loads(json_.render_json(report)), schema())
        assert report.diagnoses[0].cause == "artifact-incomplete"

    @pytest.mark.parametrize(
        ("name", "cause"),
        [
            ("mixed_devices", "mixed-device"),
            ("one_value", "export-specialization"),
            ("json", "artifact-corrupt"),
            ("operator", "custom-op-missing"),
            ("schema", "load-api"),
            ("constants_gone", "artifact-incomplete"),
            ("node", "export-unsupported"),
        ],
    )
    def test_the_cause(self, runner, folder, name, cause):
        assert ask(runner, folder / f"{name}.pt2").diagnoses[0].cause == cause

    @pytest.mark.parametrize(
        ("name", "cause", "status"),
        [
            ("large", "large-weights", 0),
            ("dtype_of_input", "dtype-unsupported", 1),
            ("no_shim", "missing-c-shim", 0),
            ("unbounded", "unbacked-symint", 0),
            ("dropout_on", "train-mode", 0),
            ("written_aten", "input-mutation", 0),
            ("number", "input-nontensor", 1),
            ("custom_without_fake", "custom-op-no-kernel", 1),
        ],
    )
    def test_a_program_that_a_function_makes(self, runner, name, cause, status, tmp_path):
        module = tmp_path / "make.py"
        module.write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom programs.broken import {name}\n")
        report = ask(runner, f"{module}:{name}")
        assert report.diagnoses[0].cause == cause
        assert exit_status(report, "error") == status

    def test_what_was_asked_for_is_compared(self, runner, folder, tmp_path):
        asked = tmp_path / "shapes.json"
        asked.write_text('{"x": {"1": "width"}}')
        report = ask(runner, folder / "as_saved.pt2", dynamic_shapes=str(asked))
        assert report.diagnoses[0].cause == "export-specialization"
        assert report.diagnoses[0].subject == "args[0].shape[1]"

    def test_an_argument_that_is_not_there_is_a_usage_error(self, runner, folder, tmp_path):
        asked = tmp_path / "shapes.json"
        asked.write_text('{"z": {"0": "batch"}}')
        with pytest.raises(UsageError, match="no input z"):
            ask(runner, folder / "as_saved.pt2", dynamic_shapes=str(asked))

    def test_a_setup_that_raises_is_not_the_programs_fault(self, runner, folder, tmp_path):
        ops = tmp_path / "ops.py"
        ops.write_text("raise RuntimeError('no such library')\n")
        report = ask(runner, folder / "as_saved.pt2", setup=str(ops))
        assert [item.code for item in report.findings if item.severity is Severity.ERROR] == ["VERIFY-L06"]
        assert report.diagnoses[0].cause == "setup-failed"

    def test_a_setup_that_registers_the_operator(self, runner, folder, tmp_path):
        ops = tmp_path / "ops.py"
        ops.write_text(
            "import torch\n"
            "@torch.library.custom_op('zoogone::scale', mutates_args=())\n"
            "def scale(x: torch.Tensor, factor: float) -> torch.Tensor:\n"
            "    return x * factor\n"
            "scale.register_fake(lambda x, factor: torch.empty_like(x))\n"
        )
        report = ask(runner, folder / "operator.pt2", setup=str(ops))
        assert (report.verdict, exit_status(report, "error")) == ("healthy", 0)

    def test_a_package_is_no_program(self, runner, packages):
        package = next(packages.cache.glob("linear-*/model.pt2"))
        report = ask(runner, package)
        assert exit_status(report, "error") == 4
        assert "AOTInductor package" in report.cannot_examine
