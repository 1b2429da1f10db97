"""`check` and `inspect` of ExecuTorch files: healthy ones, and every fault that their bytes alone can have."""

from __future__ import annotations

import importlib.util
import json
import struct

import pytest
from typer.testing import CliRunner

import aotidoctor
from aotidoctor.cli import build_app
from aotidoctor.model.evidence import Severity
from tests.artifacts.executorch import code_at, content, library, put, with_code
from tests.artifacts.packages import archive_parts, model_parts
from tests.artifacts.zips import build_zip

HAS_RUNTIME = importlib.util.find_spec("executorch") is not None
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
    assert report.verdict == "healthy"
    # This host has no GPU, and the code is for one: it is no fault of the file.
    told = {"no-driver", "no-device", "asked-for", "unlinked"} if name.startswith("cuda") else set()
    assert {item.kind for item in report.findings} <= told
    assert not any("--data" in item.reason for item in report.not_checked if item.name == "executorch_data")


@pytest.mark.parametrize("name", ["cuda_mlp", "cuda_legacy", "portable_external", "xnnpack_external"])
def test_without_data_it_is_told_what_was_not_looked_for(check, name):
    report = check(content(f"{name}.pte"))
    (reason,) = (item.reason for item in report.not_checked if item.name == "executorch_data")
    assert report.verdict == "healthy"
    assert "--data" in reason


def test_program_without_external_data_needs_none(check):
    report = check(content("portable_methods.pte"))
    assert report.verdict == "healthy"
    assert {item.name for item in report.not_checked if not item.moot} == {"runs"} | {
        item.name for item in report.not_checked if "no inputs were given" in item.reason
    }


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
        (with_code(MLP, library("cuda_windows.dll")), WEIGHTS, "platform-mismatch"),
        (with_code(MLP, b"MZ" + bytes(500)), WEIGHTS, "artifact-corrupt"),
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
    (finding,) = (item for item in report.findings if item.code.startswith("AD-PTE"))
    assert (finding.code, finding.severity, finding.facts["near"]) == ("AD-PTE-002", Severity.WARN, "CudaBackend")


def test_of_another_package_nothing_is_said_of_executorch(tmp_path):
    (tmp_path / "model.pt2").write_bytes(build_zip([*archive_parts(), *model_parts()]))
    report = aotidoctor.check(tmp_path / "model.pt2", host="debian-13")
    assert not [item for item in (*report.findings, *report.not_checked) if item.code.startswith("AD-PTE")]


@pytest.fixture
def call(check, tmp_path):
    """The findings of a call of ``cuda_mlp.pte`` (``float32[2..64, 32]``), or of another file, with these tensors."""

    def called(*tensors, program=MLP, **more):
        given = [{"tensor": tensor} for tensor in tensors]
        (tmp_path / "x.json").write_text(json.dumps({"args": given}))
        return check(program, WEIGHTS, inputs=tmp_path / "x.json", **more)

    return called


def f32(*shape, **more):
    return {"dtype": "float32", "shape": shape, "low": 0, "high": 1, **more}


def test_call_that_fits_is_healthy(call):
    for batch in (2, 64):
        report = call(f32(batch, 32))
        assert report.verdict == "healthy"
        assert not any(item.code.startswith("AD-IN") for item in report.findings)


@pytest.mark.parametrize(
    ("tensors", "cause"),
    [
        ([f32(100, 32)], "input-range"),
        ([f32(4, 31)], "input-shape"),
        ([f32(4)], "input-rank"),
        ([f32(4, 1, 32)], "input-rank"),
        ([f32(4, 32, dtype="float16")], "input-dtype"),
        ([], "input-count"),
        ([f32(4, 32), f32(4, 32)], "input-count"),
        ([f32(4, 32, stride=[1, 4])], "input-stride"),
        ([f32(4, 32, device="cuda:0")], "input-device"),
    ],
)
def test_call_that_does_not_fit_the_method_has_its_cause(call, tensors, cause):
    report = call(*tensors)
    assert (report.verdict, report.cause) == ("problem", cause)


def test_number_for_a_tensor_is_named(check, tmp_path):
    (tmp_path / "x.json").write_text('{"args": [1]}')
    report = check(MLP, WEIGHTS, inputs=tmp_path / "x.json")
    assert (report.verdict, report.cause) == ("problem", "input-nontensor")


def test_batch_below_the_range_that_only_the_code_knows_is_a_warning(call):
    report = call(f32(1, 32))
    (finding,) = (item for item in report.findings if item.code == "AD-IN-017")
    assert (finding.kind, finding.severity, report.verdict) == ("batch-one", Severity.WARN, "healthy")


def test_inputs_of_one_of_several_methods(check, tmp_path):
    program = content("portable_methods.pte")
    (tmp_path / "x.json").write_text(json.dumps({"args": [{"tensor": f32(3)}, {"tensor": f32(3)}, 5]}))
    assert check(program, inputs=tmp_path / "x.json", model_name="encode").verdict == "healthy"
    assert check(program, inputs=tmp_path / "x.json").cause == "input-count"
    assert check(program, inputs=tmp_path / "x.json", model_name="decode").cause == "model-name"


def test_size_beyond_a_bound_that_the_memory_has_room_for_is_a_warning(call):
    # Without its code, only the upper bounds are known.
    report = call(f32(100, 16), program=with_code(MLP, library("cuda_windows.dll")), host="executorch-1.4+windows")
    (finding,) = (item for item in report.findings if item.code == "AD-IN-017")
    assert (finding.kind, finding.severity, finding.facts["size"]) == ("high", Severity.WARN, 100)


@pytest.mark.parametrize(
    ("program", "host", "cause"),
    [
        (MLP, "executorch-1.3+executorch-cuda", "abi-mismatch"),
        (MLP, "executorch-1.4", "backend-unsupported"),
        (MLP, "executorch-1.5+executorch-cuda+debian-13", "executable-stack"),
        (MLP, "executorch-1.5+executorch-cuda+windows", "platform-mismatch"),
        (MLP, "executorch-1.5+executorch-cuda+torch-2.13-cpu", "device-unavailable"),
        (with_code(MLP, library("cuda_windows.dll")), "executorch-1.3+executorch-cuda+windows", "abi-mismatch"),
        (with_code(MLP, ELF.replace(b"aoti_torch_get_numel\0", b"aoti_torch_get_never\0")),
         "executorch-1.5+executorch-cuda", "abi-mismatch"),
        (content("xnnpack_external.pte"), "executorch-1.1", None),
        (with_code(MLP, library("cuda_windows.dll")), "executorch-1.4+executorch-cuda+windows", None),
        (MLP, "executorch-1.4+executorch-cuda+debian-12", None),
    ],
)  # fmt: skip
def test_host_that_cannot_run_it_is_told_by_release_and_backends(check, program, host, cause):
    report = check(program, host=host)
    assert report.cause == cause


def test_functions_that_no_release_has_are_a_warning_where_the_release_is_not_known(check):
    report = check(with_code(MLP, ELF.replace(b"aoti_torch_get_numel\0", b"aoti_torch_get_never\0")), WEIGHTS)
    (finding,) = (item for item in report.findings if item.code == "AD-HOST-006")
    assert (finding.kind, finding.severity, finding.facts["symbols"]) == (
        "symbol",
        Severity.WARN,
        ("aoti_torch_get_never",),
    )


def test_oldest_release_that_runs_it_is_told(check):
    (reason,) = (item.reason for item in check(MLP, WEIGHTS).not_checked if item.name == "abi_mismatch")
    assert "ExecuTorch 1.4 or later" in reason


def test_device_of_the_compile_spec_that_the_plan_does_not_have(check):
    report = check(MLP.replace(b"cuda:0", b"cuda:1"), WEIGHTS)
    (finding,) = (item for item in report.findings if item.code == "AD-LOAD-004")
    assert (finding.kind, finding.severity, finding.facts["planned"]) == ("target", Severity.WARN, ("cuda:0",))


def test_nan_in_tensors_of_a_data_file_is_a_warning(check):
    weights = content("portable_external.ptd")
    base = struct.unpack_from("<Q", weights, 32)[0]
    report = check(content("portable_external.pte"), put(weights, base, struct.pack("<2f", float("nan"), float("nan"))))
    (finding,) = report.findings
    assert (finding.code, finding.kind, finding.severity, finding.facts["nan"]) == (
        "AD-PTE-001",
        "nan",
        Severity.WARN,
        2,
    )
    reasons = [item.reason for item in check(MLP, WEIGHTS).not_checked if item.name == "executorch_data"]
    assert "NaN is not looked for" in reasons[0]


def test_markdown_and_html_of_inspect_have_the_delegate_and_the_code(tmp_path):
    (tmp_path / "m.pte").write_bytes(MLP)
    report = aotidoctor.inspect(tmp_path / "m.pte")
    for text in (report.to_markdown(), report.to_html(), report.to_text()):
        assert "CudaBackend; method_name=forward" in text
        assert "4 kernels for sm_90a, compute_90" in text
        assert "l1.weight" in text


def test_difference_of_two_programs_is_named_by_backend_and_keys(tmp_path):
    (tmp_path / "a.pte").write_bytes(MLP)
    (tmp_path / "b.pte").write_bytes(put(MLP, PAYLOAD + 73, b"0" * 64).replace(b"CudaBackend", b"XudaBackend"))
    words = ["diff", str(tmp_path / "a.pte"), str(tmp_path / "b.pte"), "--json"]
    found = json.loads(CliRunner().invoke(build_app(), words).stdout)
    subjects = {item["subject"] for item in found["differences"]}
    assert {"forward: backends", "forward: weights key", "needed from a .ptd"} <= subjects


def test_batch_takes_programs_with_the_data_beside_them(tmp_path):
    for name, data in (("good", "cuda_mlp"), ("bad", "cuda_legacy")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.pte").write_bytes(MLP)
        (tmp_path / name / "w.ptd").write_bytes(content(f"{data}.ptd"))
    (tmp_path / "list.csv").write_text("package,data\ngood/m.pte,bad/w.ptd\n")
    words = ["batch", str(tmp_path / "good"), str(tmp_path / "bad"), str(tmp_path / "list.csv"), "--jobs", "1", "-q"]
    CliRunner().invoke(build_app(), [*words, "-o", str(tmp_path / "results"), "--cache", str(tmp_path / "cache")])
    lines = (tmp_path / "results" / "results.jsonl").read_text().splitlines()
    answers = sorted((item["verdict"], item.get("cause")) for item in map(json.loads, lines))
    assert answers == [("healthy", None), ("problem", "weights-not-loaded"), ("problem", "weights-not-loaded")]


def test_contract_of_the_method_has_constants_outputs_and_bounds(tmp_path):
    (tmp_path / "m.pte").write_bytes(MLP)
    found = json.loads(aotidoctor.inspect(tmp_path / "m.pte").to_json())
    contract, (model,) = found["contract"], found["artifact"]["models"]
    assert (contract["source"], contract["n_outputs"]) == ("executorch", 1)
    assert [item["original_fqn"] for item in contract["constants"]] == ["l1.weight", "l1.bias", "l2.weight"]
    assert model["gpu_targets"] == ["sm_90a", "compute_90"]


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


@pytest.mark.parametrize(
    ("name", "host", "answer", "causes"),
    [
        ("cuda_mlp", "executorch-1.3+executorch-cuda+debian-12", "refused", ["abi-mismatch"]),
        ("cuda_mlp", "executorch-1.5", "refused", ["backend-unsupported"]),
        ("cuda_mlp", "executorch-1.5+executorch-cuda+debian-12", "unknown", []),
        ("cuda_mlp", "executorch-1.5+executorch-cuda+debian-12+torch-2.13-cpu", "refused", ["device-unavailable"]),
        ("cuda_mlp", "executorch-1.5+executorch-cuda+windows", "refused", ["platform-mismatch"]),
        ("xnnpack_external", "executorch-1.1", "runs", []),
        ("xnnpack_external", "debian-12", "unknown", []),
        ("portable_methods", "executorch-1.1+windows", "runs", []),
    ],
)
def test_compat_judges_release_backends_and_system(tmp_path, name, host, answer, causes):
    (tmp_path / "m.pte").write_bytes(content(f"{name}.pte"))
    result = CliRunner().invoke(build_app(), ["compat", str(tmp_path / "m.pte"), "--host", host, "--json"])
    found = json.loads(result.stdout)["compat"]
    (cell,) = found["answers"]
    assert (cell["answer"], cell["causes"]) == (answer, causes)
    if name == "cuda_mlp":
        (needs,) = found["needs"]
        assert (needs["executorch_least"], needs["backends"], needs["torch_least"]) == ("1.4", ["CudaBackend"], None)


def test_plan_is_one_call_in_the_runtime_or_why_there_is_none(tmp_path):
    (tmp_path / "m.pte").write_bytes(content("portable_methods.pte"))
    result = CliRunner().invoke(build_app(), ["run", "--plan", str(tmp_path / "m.pte"), "--json"])
    (line,) = json.loads(result.stdout)["plan"]
    assert line.startswith("plain_run: yes" if HAS_RUNTIME else "plain_run: no - ExecuTorch is not installed")


def test_foreign_program_is_not_executed(tmp_path):
    (tmp_path / "m.pte").write_bytes(put(MLP, 4, b"ET99"))
    result = CliRunner().invoke(build_app(), ["run", str(tmp_path / "m.pte"), "--json"])
    answer = json.loads(result.stdout)
    (reason,) = (item["reason"] for item in answer["not_checked"] if item["name"] == "runs")
    assert answer["diagnoses"][0]["cause"] == "artifact-corrupt"
    assert not answer["runs"]
    assert "could not be read" in reason or "not executed" in reason


@pytest.mark.skipif(HAS_RUNTIME, reason="ExecuTorch is here")
def test_without_the_runtime_run_says_so_and_what_the_files_say(tmp_path):
    (tmp_path / "m.pte").write_bytes(content("xnnpack_external.pte"))
    (tmp_path / "w.ptd").write_bytes(content("portable_external.ptd"))
    words = ["run", str(tmp_path / "m.pte"), "--data", str(tmp_path / "w.ptd"), "--json"]
    answer = json.loads(CliRunner().invoke(build_app(), words).stdout)
    (reason,) = (item["reason"] for item in answer["not_checked"] if item["name"] == "runs")
    assert reason.startswith("ExecuTorch is not installed")
    assert [item["cause"] for item in answer["diagnoses"]] == ["weights-not-loaded"]


@pytest.mark.skipif(not HAS_RUNTIME, reason="ExecuTorch is not installed")
@pytest.mark.parametrize(
    ("program", "data", "shape", "cause"),
    [
        ("portable_methods.pte", None, (2, 8), None),
        ("portable_methods.pte", None, (2, 9), "input-shape"),
        ("portable_external.pte", "portable_external.ptd", (4, 32), None),
        ("portable_external.pte", "portable_external.ptd", (100, 32), "input-range"),
        ("xnnpack_external.pte", "xnnpack_external.ptd", (4, 32), None),
        ("xnnpack_external.pte", "portable_external.ptd", (4, 32), "weights-not-loaded"),
    ],
)
def test_run_calls_the_method_in_the_runtime(tmp_path, program, data, shape, cause):
    (tmp_path / "m.pte").write_bytes(content(program))
    (tmp_path / "x.json").write_text(json.dumps({"args": [{"tensor": f32(*shape)}]}))
    if data is not None:
        (tmp_path / "w.ptd").write_bytes(content(data))
    report = aotidoctor.diagnose(
        tmp_path / "m.pte", tmp_path / "x.json", data=tmp_path / "w.ptd" if data else None, timeout=200
    )
    (ended,) = (item for item in report.findings if item.code == "AD-RUN-001")
    assert (report.cause, ended.kind == "ok") == (cause, cause is None)


def test_saved_report_is_analyzed_without_another_cause(check, tmp_path):
    (tmp_path / "m.pte").write_bytes(MLP)
    (tmp_path / "w.ptd").write_bytes(content("cuda_legacy.ptd"))
    words = ["check", str(tmp_path / "m.pte"), "--data", str(tmp_path / "w.ptd"), "--json"]
    (tmp_path / "report.json").write_text(CliRunner().invoke(build_app(), words).stdout)
    answer = json.loads(CliRunner().invoke(build_app(), ["analyze", str(tmp_path / "report.json"), "--json"]).stdout)
    assert [item["cause"] for item in answer["diagnoses"]] == ["weights-not-loaded"]
