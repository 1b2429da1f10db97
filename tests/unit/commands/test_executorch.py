"""`check` and `inspect` of ExecuTorch files: healthy ones, and every fault that their bytes alone can have."""

from __future__ import annotations

import json
import struct

import pytest
from typer.testing import CliRunner

import aotidoctor
from aotidoctor.cli import build_app
from aotidoctor.model.evidence import Severity
from tests.artifacts.executorch import code_at, content, put, with_code
from tests.artifacts.packages import archive_parts, model_parts
from tests.artifacts.zips import build_zip

MLP, WEIGHTS = content("cuda_mlp.pte"), content("cuda_mlp.ptd")
CODE = code_at(MLP)
PAYLOAD = MLP.index(b"_so_blob\n") - 64
ELF = MLP[CODE:]


@pytest.fixture
def check(tmp_path):
    def checked(program, *data, **more):
        (tmp_path / "m.pte").write_bytes(program)
        paths = [tmp_path / f"w{at}.ptd" for at in range(len(data))]
        for path, one in zip(paths, data, strict=True):
            path.write_bytes(one)
        return aotidoctor.check(tmp_path / "m.pte", data=paths or None, **more)

    return checked


def seen(report):
    return [(item.code, item.kind) for item in report.findings if item.severity is Severity.ERROR]


@pytest.mark.parametrize("name", ["cuda_mlp", "cuda_legacy", "portable_external", "xnnpack_external"])
def test_program_with_its_data_is_healthy(check, name):
    report = check(content(f"{name}.pte"), content(f"{name}.ptd"))
    assert (report.verdict, report.findings) == ("healthy", ())
    assert "executorch_data" not in {item.name for item in report.not_checked}


@pytest.mark.parametrize("name", ["cuda_mlp", "cuda_legacy", "portable_external", "xnnpack_external"])
def test_without_data_it_is_told_what_was_not_looked_for(check, name):
    report = check(content(f"{name}.pte"))
    (reason,) = (item.reason for item in report.not_checked if item.name == "executorch_data")
    assert report.verdict == "healthy"
    assert "--data" in reason


def test_program_without_external_data_needs_none(check):
    report = check(content("portable_methods.pte"))
    assert report.verdict == "healthy"
    assert {item.name for item in report.not_checked if not item.moot} == {"runs"}


@pytest.mark.parametrize(
    ("program", "data", "cause"),
    [
        (MLP[: len(MLP) // 2], WEIGHTS, "artifact-corrupt"),
        (MLP[:40], WEIGHTS, "artifact-corrupt"),
        (b"", WEIGHTS, "artifact-corrupt"),
        (put(MLP, 4, b"ET99"), WEIGHTS, "artifact-corrupt"),
        (put(MLP, PAYLOAD + 72, b" "), WEIGHTS, "artifact-corrupt"),
        (put(MLP, PAYLOAD, b"0" * 64), WEIGHTS, "artifact-incomplete"),
        (put(MLP, PAYLOAD + 73, b"0" * 64), WEIGHTS, "weights-not-loaded"),
        (put(MLP, CODE, bytes(64)), WEIGHTS, "artifact-corrupt"),
        (put(MLP, CODE + 18, struct.pack("<H", 183)), WEIGHTS, "artifact-corrupt"),
        (put(MLP, CODE + 1000, b"\xff" * 64), WEIGHTS, "artifact-corrupt"),
        (MLP, WEIGHTS[:4000], "artifact-corrupt"),
        (MLP, put(WEIGHTS, 4, b"FT99"), "artifact-corrupt"),
        (MLP, b"", "artifact-corrupt"),
        (MLP, put(WEIGHTS, WEIGHTS.index(b"_weights_blob") - 64, b"0" * 64), "artifact-corrupt"),
        (MLP, WEIGHTS[:256] + struct.pack("<f", float("nan")) * 1968, "artifact-corrupt"),
        (MLP, content("cuda_legacy.ptd"), "weights-not-loaded"),
        (MLP, MLP, "artifact-wrong-kind"),
        (MLP, b"PK\3\4" + bytes(200), "artifact-wrong-kind"),
        (content("portable_external.pte"), content("xnnpack_external.ptd"), "weights-not-loaded"),
        (content("xnnpack_external.pte"), put(content("xnnpack_external.ptd"), 8000, b"\xff"), "artifact-corrupt"),
        (with_code(MLP, put(ELF, 18, struct.pack("<H", 183))), WEIGHTS, "platform-mismatch"),
        (with_code(MLP, b"MZ" + bytes(500)), WEIGHTS, "platform-mismatch"),
    ],
)
def test_fault_has_its_cause(check, program, data, cause):
    report = check(program, data)
    assert (report.verdict, report.cause) == ("problem", cause)


def test_weights_may_be_in_the_second_data_file(check):
    assert check(MLP, content("cuda_legacy.ptd"), WEIGHTS).verdict == "healthy"


def test_changed_weights_of_an_unknown_owner_are_a_warning(tmp_path):
    (tmp_path / "w.ptd").write_bytes(put(content("xnnpack_external.ptd"), 8000, b"\xff"))
    report = aotidoctor.check(tmp_path / "w.ptd")
    assert (report.verdict, [item.severity for item in report.findings]) == ("healthy", [Severity.WARN])


def test_unknown_backend_is_a_warning_with_the_nearest_name(check):
    report = check(MLP.replace(b"CudaBackend", b"CudoBackend"), WEIGHTS)
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.facts["near"]) == ("AD-PTE-002", Severity.WARN, "CudaBackend")


def test_inputs_are_not_compared_and_that_is_reported(check, tmp_path):
    (tmp_path / "x.json").write_text('{"args": [[1.0]]}')
    report = check(MLP, WEIGHTS, inputs=tmp_path / "x.json")
    assert "executorch_inputs" in {item.name for item in report.not_checked}


def test_data_that_is_not_there_cannot_be_examined(tmp_path):
    (tmp_path / "m.pte").write_bytes(MLP)
    report = aotidoctor.check(tmp_path / "m.pte", data=tmp_path / "none.ptd")
    assert "none.ptd" in report.cannot_examine


def test_data_beside_a_package_is_reported_as_not_looked_at(tmp_path):
    (tmp_path / "m.pt2").write_bytes(build_zip([*archive_parts(), *model_parts()]))
    report = aotidoctor.check(tmp_path / "m.pt2", data=tmp_path / "w.ptd")
    assert any(item.name == "executorch_data" and "--data" in item.reason for item in report.not_checked)


def test_inspect_has_methods_keys_and_what_is_needed(tmp_path):
    (tmp_path / "m.pte").write_bytes(MLP)
    report = aotidoctor.inspect(tmp_path / "m.pte")
    found = json.loads(report.to_json())["artifact"]["executorch"]
    assert report.verdict == "healthy"
    assert [method["name"] for method in found["methods"]] == ["forward"]
    assert found["methods"][0]["delegates"][0]["backend"] == "CudaBackend"
    assert len(found["needed_data"]) == 1


@pytest.mark.parametrize("words", [("run", "--plan"), ("compat",)])
def test_what_runs_packages_says_what_it_is_instead(tmp_path, words):
    (tmp_path / "m.pte").write_bytes(MLP)
    result = CliRunner().invoke(build_app(), [*words, str(tmp_path / "m.pte"), "--json"])
    assert "an ExecuTorch program (.pte)" in result.stdout
    assert json.loads(result.stdout)["diagnoses"][0]["cause"] == "artifact-wrong-kind"


def test_saved_report_is_analyzed_without_another_cause(check, tmp_path):
    (tmp_path / "m.pte").write_bytes(MLP)
    (tmp_path / "w.ptd").write_bytes(content("cuda_legacy.ptd"))
    words = ["check", str(tmp_path / "m.pte"), "--data", str(tmp_path / "w.ptd"), "--json"]
    (tmp_path / "report.json").write_text(CliRunner().invoke(build_app(), words).stdout)
    answer = json.loads(CliRunner().invoke(build_app(), ["analyze", str(tmp_path / "report.json"), "--json"]).stdout)
    assert [item["cause"] for item in answer["diagnoses"]] == ["weights-not-loaded"]
