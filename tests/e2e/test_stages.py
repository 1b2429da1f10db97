"""Whose fault it is: the stages from the model to its package, each broken once by a fault that was put there."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest
from foundry.cases import Kit
from foundry.cases_load import _scale_weights
from warm import line

from aotidoctor.commands.verify import VerifyRequest, verify
from aotidoctor.model.case import Options
from tests.e2e.test_recompile import WRONG_DECOMPOSITION

STAGED = Path(__file__).parent / "programs" / "staged.py"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="module")
def folder(made_once) -> Path:
    """The programs of the models."""
    where = made_once("staged", "sample.pt", STAGED)
    shutil.copyfile(STAGED, where / "staged.py")
    return where


@pytest.fixture
def verified(folder, runner):
    """``verified(program, model)``: the report of ``verify``, and the verdict of each stage."""

    def judge(program: str, model: str, **options: str):
        spec = f"{folder}/staged.py:{model}"
        path = f"{folder}/{program}"
        request = VerifyRequest(program=path, options=Options(model=spec, **options))
        report = verify(request, environ=os.environ, runner=runner)
        return report, {row.name: row for row in report.localization.stages}

    return judge


def test_a_healthy_way_agrees_everywhere(verified):
    report, stages = verified("healthy.pt2", "healthy")
    assert (report.verdict, report.diagnoses) == ("healthy", ())
    assert [(name, stages[name].verdict) for name in ("eager", "exported", "decomposed")] == [
        ("eager", "agrees"),
        ("exported", "agrees"),
        ("decomposed", "agrees"),
    ]
    assert not any(row.first for row in stages.values())
    assert {stages[name].verdict for name in ("lowered", "package")} == {"not looked at"}


@pytest.mark.parametrize("model", ["counting", "resizing"])
def test_state_and_operators_of_many_parts_agree(verified, model):
    _, stages = verified(f"{model}.pt2", model)
    assert {stages[name].verdict for name in ("eager", "exported", "decomposed")} == {"agrees"}


def test_random_numbers_are_nobodys_fault(verified):
    report, stages = verified("dropping.pt2", "dropping")
    assert (stages["exported"].verdict, stages["decomposed"].verdict) == ("agrees", "undecided")
    assert stages["decomposed"].operator is None
    assert not any(row.first for row in stages.values())
    assert [item.kind for item in report.findings if item.code == "AD-RUN-038"] == ["agrees"]


@pytest.mark.parametrize("model", ["without_example", "called"])
def test_the_example_of_the_program_is_used_where_the_model_has_none(verified, model):
    report, stages = verified("healthy.pt2", model)
    assert report.verdict == "healthy"
    assert stages["exported"].verdict == "agrees"


def test_weights_that_are_others_each_time_are_no_difference(verified):
    report, stages = verified("healthy.pt2", "other_weights")
    assert (report.verdict, stages["exported"].verdict) == ("healthy", "agrees")
    exported = next(run for run in report.runs if run.id == stages["exported"].run)
    assert exported.result["weights"] == ["scale"]


def test_the_models_own_error(verified):
    report, stages = verified("healthy.pt2", "refusing")
    first = report.diagnoses[0]
    assert (first.cause, stages["eager"].first, stages["eager"].verdict) == ("operator-refused", True, "raises")
    assert stages["eager"].where.endswith("# refused")
    assert "The model itself raises" in first.remedy.text
    assert stages["exported"].verdict == "not looked at"


def test_a_model_that_dies_dies_alone(verified):
    report, stages = verified("healthy.pt2", "dying")
    assert (stages["eager"].verdict, stages["eager"].observed) == ("raises", "killed by SIGSEGV")
    assert stages["eager"].first
    assert report.verdict == "problem"


def test_a_branch_that_export_fixed(verified):
    report, stages = verified("healthy.pt2", "rectified")
    first = report.diagnoses[0]
    assert (first.cause, first.status.value, first.subject) == (
        "export-specialization",
        "confirmed",
        "aten.relu.default",
    )
    row = stages["exported"]
    assert (row.verdict, row.first, row.operator) == ("differs", True, "aten.relu.default")
    assert "aten.tanh.default" in row.observed
    line = (
        STAGED.read_text()
        .splitlines()
        .index("        y = torch.relu(y) if self.rectified else torch.tanh(y)  # the branch")
    )
    assert row.where == f"staged.py:{line + 1}"
    # Exported again it is right, which is tried.
    assert (stages["not strict"].verdict, first.remedy.verified) == ("agrees", True)
    assert stages["decomposed"].verdict == "not looked at"


def test_a_model_that_export_itself_changes(verified):
    report, stages = verified("exporting.pt2", "exporting")
    first = report.diagnoses[0]
    assert (first.cause, first.remedy.verified) == ("export-specialization", False)
    assert {stages[name].verdict for name in ("exported", "not strict", "strict")} == {"differs"}
    assert [name for name, row in stages.items() if row.first] == ["exported"]
    assert (stages["exported"].operator, "aten.mul.Tensor" in stages["exported"].observed) == ("aten.add.Tensor", True)


def test_a_wrong_decomposition(verified, tmp_path):
    setup = tmp_path / "wrong_decomposition.py"
    setup.write_text(WRONG_DECOMPOSITION)
    report, stages = verified("healthy.pt2", "healthy", setup=str(setup))
    first = report.diagnoses[0]
    assert (first.cause, first.status.value, first.subject) == ("codegen-bug", "confirmed", "aten.gelu.default")
    assert [name for name, row in stages.items() if row.first] == ["decomposed"]
    assert stages["decomposed"].where.startswith("staged.py:")
    assert first.remedy.verified is False


def test_a_function_that_returns_a_program_is_no_model(verified):
    report, _ = verified("healthy.pt2", "program")
    assert "give it with --reference" in report.cannot_examine


def stages_of(report: dict) -> dict[str, dict]:
    return {row["name"]: row for row in report["localization"]["stages"]}


def test_a_package_of_another_checkpoint(packages: Kit, case_dir: Path):
    model = case_dir / "model.py"
    build = (
        "import sys\nsys.path.insert(0, %r)\nfrom foundry.models import linear\ndef model():\n    return linear()[:2]\n"
    )
    model.write_text(build % str(Path(__file__).parent))
    package = _scale_weights(packages, case_dir)
    words = ["run", package, "-i", packages.sample_path("linear"), "--reference", packages.exported("linear")]
    report = json.loads(line()(*words, "--model", f"{model}:model", "--json").stdout)
    assert report["diagnoses"][0]["cause"] == "weights-differ"
    rows = stages_of(report)
    assert [(name, row["verdict"]) for name, row in rows.items() if row["run"]] == [
        ("eager", "agrees"),
        ("exported", "agrees"),
        ("decomposed", "agrees"),
        ("package", "differs"),
    ]
    assert [name for name, row in rows.items() if row["first"]] == ["package"]


def test_a_package_that_is_compiled_wrong_with_the_model_alone(packages: Kit, case_dir: Path):
    model = case_dir / "model.py"
    model.write_text(
        "import torch\n\n\ndef model(x):\n    y = torch.nn.functional.gelu(x * 1.5) + 1\n    return y, y.mean(dim=1)\n"
    )
    words = ["run", packages.package("wronggelu"), "-i", packages.sample_path("wronggelu"), "--model", f"{model}:model"]
    report = json.loads(line()(*words, "--json").stdout)
    rows = stages_of(report)
    assert [(name, row["verdict"]) for name, row in rows.items()] == [
        ("eager", "agrees"),
        ("not strict", "agrees"),
        ("decomposed", "agrees"),
        ("lowered", "agrees"),
        ("package", "differs"),
    ]
    first = report["diagnoses"][0]
    assert (first["cause"], first["status"]) == ("numeric-difference", "confirmed")
    assert [name for name, row in rows.items() if row["first"]] == ["package"]


def test_only_a_package_says_what_it_could_not_tell(packages: Kit):
    words = ["run", packages.package("linear"), "-i", packages.sample_path("linear")]
    report = json.loads(line()(*words, "--json").stdout)
    note = next(item for item in report["not_checked"] if item["name"] == "stages")
    assert "could not be told apart" in note["reason"]
    assert "--model" in note["reason"]
    assert report["localization"] is None or report["localization"]["stages"] == []
