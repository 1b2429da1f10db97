"""``verify --against``: packages of the foundry, and programs that they were and were not compiled from."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from foundry import edit
from foundry.models import BY_NAME as MODELS
from warm_python import python_script

from aotidoctor.commands.diagnose_package import diagnose
from aotidoctor.commands.verify import VerifyRequest, verify
from aotidoctor.model.case import Options
from aotidoctor.model.evidence import Severity
from aotidoctor.program.verify_stages import judge_against, open_program
from aotidoctor.reports.text import exit_status

ORIGINS = Path(__file__).parent / "programs" / "origins.py"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="module")
def programs(tmp_path_factory, packages):
    room = tmp_path_factory.mktemp("origins")
    done = python_script(ORIGINS, room, packages.exported("linear"), seconds=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return room


def judged(program, package):
    found, left_out = judge_against(open_program(str(program)), str(package))
    verdict = found[-1]
    assert verdict.code == "VERIFY-P00"
    return verdict, {f"{item.code.removeprefix('VERIFY-')} {item.kind}" for item in found[:-1]}, found, left_out


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_package_comes_from_its_program(name, packages):
    verdict, differences, _, _ = judged(packages.exported(name), packages.package(name))
    # Weights that the package does not carry cannot be told, nor whether a compiler or another program gave this gelu.
    unknown = name in ("external", "positions", "cpponly", "wronggelu")
    assert verdict.kind == ("unknown" if unknown else "same")
    assert verdict.severity is Severity.INFO
    assert differences == ({"P05 functions-hint"} if name == "wronggelu" else set())


@pytest.mark.parametrize("name", ["linear", "blob", "mmapped", "pickled"])
def test_weights_are_compared_wherever_they_are(name, packages):
    verdict, _, _, left_out = judged(packages.exported(name), packages.package(name))
    assert verdict.facts["equal_constants"] == 3
    assert left_out == []


TABLE = {
    "other_checkpoint": ("linear", "other-weights", {"P06 weights"}),
    "one_bit": ("linear", "other-weights", {"P06 weights"}),
    "one_weight": ("linear", "other-weights", {"P06 weights"}),
    "linear_pickled": ("linear", "same", set()),
    "linear_legacy": ("linear", "same", set()),
    "other_checkpoint_pickled": ("linear", "other-weights", {"P06 weights"}),
    "other_checkpoint_legacy": ("linear", "other-weights", {"P06 weights"}),
    "renamed_parameter": ("linear", "other-program", {"P04 name"}),
    "mlp_again": ("mlp", "same", set()),
    "mlp_narrower": ("mlp", "other-program", {"P02 range"}),
    "mlp_wider": ("mlp", "unknown", {"P02 range-hint"}),
    "mlp_dims": ("mlp", "other-program", {"P02 size", "P02 strides-hint", "P03 shape"}),
    "mlp_dtype": ("mlp", "other-program", {"P02 dtype", "P03 dtype"}),
    "mlp_static": ("mlp", "other-program", {"P02 dynamic"}),
    "mlp_two_outputs": ("mlp", "other-program", {"P03 count"}),
    "mlp_apart": ("mlp", "unknown", {"P02 shared-size-hint"}),
    "nested_again": ("nested", "same", set()),
    "nested_other_order": ("nested", "other-program", {"P01 order"}),
    "other_keyword": ("kwargs", "other-program", {"P01 names"}),
    "relu_for_gelu": ("gelu", "other-program", {"P05 functions"}),
    "silu_for_gelu": ("gelu", "other-program", {"P05 functions"}),
    "gelu_by_tanh": ("gelu", "unknown", {"P05 functions-hint"}),
    "gelu_and_sine": ("gelu", "other-program", {"P05 functions"}),
    "gelu_and_sine_of_nothing": ("gelu", "same", set()),
    "sines": ("pointwise", "other-program", {"P05 functions"}),
}


@pytest.mark.parametrize("program", TABLE)
def test_programs_that_it_was_and_was_not_compiled_from(program, programs, packages):
    package, kind, differences = TABLE[program]
    verdict, seen, _, _ = judged(programs / f"{program}.pt2", packages.package(package))
    assert (verdict.kind, seen) == (kind, differences)


def test_one_flipped_bit_is_named(programs, packages):
    _, _, found, _ = judged(programs / "one_bit.pt2", packages.package("linear"))
    assert found[0].facts["what"] == "flipped-bit"
    assert found[0].facts["weights"] == ("l.weight",)
    assert "l.weight[1, 9]: bit 30 is flipped" in str(found[0].facts["sentence"])


def test_one_weight_that_was_changed_is_named(programs, packages):
    _, _, found, _ = judged(programs / "one_weight.pt2", packages.package("linear"))
    assert found[0].facts["what"] == "stale-one"
    assert found[0].facts["equal"] == 2


def test_another_checkpoint_is_one(programs, packages):
    _, _, found, _ = judged(programs / "other_checkpoint.pt2", packages.package("linear"))
    assert found[0].facts["what"] == "other-checkpoint"


def test_bytes_that_are_not_there_are_said(programs, packages):
    verdict, differences, _, left_out = judged(programs / "no_bytes.pt2", packages.package("linear"))
    assert (verdict.kind, differences) == ("same", set())
    assert verdict.facts["equal_constants"] == 2
    assert [item.reason for item in left_out] == ["content of l.weight: the archive has no member with its bytes"]


def test_a_package_without_its_source_is_not_judged(programs, packages, tmp_path):
    members = edit.drop(edit.read(packages.package("linear")), ".cpp")
    package = edit.write(tmp_path / "bare.pt2", members)
    found, left_out = judge_against(open_program(str(packages.exported("linear"))), str(package))
    assert [item.severity for item in found if item.severity is Severity.ERROR] == []
    assert left_out


def test_a_damaged_package_is_not_judged(packages, tmp_path):
    damaged = Path(shutil.copy(packages.package("linear"), tmp_path / "damaged.pt2"))
    edit.corrupt_member(damaged, ".so")
    found, (reason,) = judge_against(open_program(str(packages.exported("linear"))), str(damaged))
    assert found == []
    assert "damaged.pt2 is damaged: the data of " in reason.reason


def test_no_package_at_all(packages):
    path = str(packages.exported("mlp"))
    found, (reason,) = judge_against(open_program(path), path)
    assert found == []
    assert "is not a readable AOTInductor package (found: exported-program" in reason.reason


@pytest.mark.parametrize(
    ("program", "package", "status", "cause"),
    [("mlp_again", "mlp", 0, None), ("mlp_dims", "mlp", 1, None), ("one_bit", "linear", 1, "weights-differ")],
)
def test_the_command(program, package, status, cause, programs, packages, runner):
    question = VerifyRequest(
        program=str(programs / f"{program}.pt2"), options=Options(), against=str(packages.package(package))
    )
    report = verify(question, environ=os.environ, runner=runner)
    assert exit_status(report, "error") == status
    assert [item.cause for item in report.diagnoses[:1]] == ([cause] if cause else [])
    assert report.extra["origin"]


def test_a_comparison_that_is_not_made_is_no_health(packages, tmp_path, runner):
    members = edit.read(packages.package("linear"))
    renamed = edit.rename(members, lambda name: name.replace("/aotinductor/model/", "/aotinductor/first/"))
    both = [*renamed, *(item for item in edit.rename(renamed, lambda name: name.replace("/first/", "/second/")))]
    package = edit.write(tmp_path / "two.pt2", dict(both).items())
    for name, status in ((None, 4), ("second", 0)):
        options = Options(model_name=name)
        question = VerifyRequest(program=str(packages.exported("linear")), options=options, against=str(package))
        report = verify(question, environ=os.environ, runner=runner)
        assert exit_status(report, "error") == status
        assert (report.cannot_examine is not None) == (status == 4)


@pytest.mark.parametrize(
    ("program", "package", "subject"),
    [
        ("mlp_again", "mlp", None),
        ("mlp_wider", "mlp", None),
        ("other_checkpoint", "linear", None),
        ("mlp_dims", "mlp", "args[0].shape[1]"),
        ("nested_other_order", "nested", "args[1]['a']"),
        ("mlp_static", "mlp", "args[0].shape[0]"),
    ],
)
def test_a_reference_that_is_another_program_is_said(program, package, subject, programs, packages):
    options = Options(reference=str(programs / f"{program}.pt2"))
    report = diagnose(str(packages.package(package)), None, options, environ={}, static_only=True)
    found = [item for item in report.findings if item.code == "AD-REF-001"]
    assert [item.subject for item in found] == ([subject] if subject else [])
    assert all(item.severity is Severity.WARN for item in found)
