"""Nine genuine CUDA packages (device code for sm_90, libraries stripped), judged without a GPU and without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.model.case import Gpu, Options, TorchBuild
from aotidoctor.model.inputs import Container, InputSet, Leaf
from aotidoctor.triage.open_case import open_case
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, run_checks
from tests.gpu.faults import other_arch
from tests.unit.checks.input_builders import tensor
from tests.unit.checks.package_builders import host

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "cuda"
PACKAGES = sorted(path.stem for path in DATA.glob("*.pt2"))
MM = ("extern", "aoti_torch_cuda_mm_out")
MLP = [MM, ("triton", "triton_poi_fused_addmm_relu_0"), MM, ("triton", "triton_poi_fused_addmm_mul_sigmoid_1")]
CALLS = {
    "gpu_const": [("triton", "triton_poi_fused_add_index_0")],
    "two_kernels": [
        ("triton", "triton_red_fused_relu_sum_0"),
        ("triton", "triton_per_fused_cumsum_exp_mul_sort_sub_1"),
    ],
}
ALSO = {"mlp_cpponly": ["artifact-cpp-only"], "mlp_noweights": ["weights-not-loaded"]}
CUDA_TORCH = TorchBuild(version="2.13.0+cu130", path="/site/torch", cuda="13.0")
CPU_TORCH = TorchBuild(version="2.13.0+cpu", path="/site/torch")
LIBRARIES = dict.fromkeys(
    ("libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libcuda.so.1", "libstdc++.so.6", "libgcc_s.so.1",
     "libc.so.6", "ld-linux-x86-64.so.2", "libgomp.so.1"), "/there",
)  # fmt: skip


def gpu(capability, name="GPU"):
    return (Gpu(index=0, name=name, compute_capability=capability),)


def case_at(path, inputs=(), **changes):
    case, _ = open_case(str(path), None, Options(), {})
    given = InputSet(
        path=None,
        format="live",
        form="live",
        args=Container(type="tuple", children=tuple(Leaf(value=one) for one in inputs)),
        kwargs=Container(type="dict", children=()),
    )
    where = {"torch": CUDA_TORCH, "gpus": gpu("90"), "cuda_driver": "580.82.07", "libraries": LIBRARIES, **changes}
    return replace(case, host=host(**where), inputs=given if inputs else None)


def causes(case):
    session = Session(case=case, runner=None)
    run_checks(session)
    return [item.cause for item in name_causes(session)], session


def package(name):
    return DATA / f"{name}.pt2"


@pytest.mark.parametrize("name", PACKAGES)
def test_on_a_fitting_host(name):
    found, _ = causes(case_at(package(name)))
    assert found == ALSO.get(name, [])


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize(
    "changes",
    [{"torch": CPU_TORCH}, {"gpus": (), "cuda_driver": None}, {"gpus": ()}],
    ids=["cpu-torch", "no-driver", "no-gpu"],
)
def test_without_a_gpu(name, changes):
    found, _ = causes(case_at(package(name), **changes))
    # Weights that are missing, and a compiler at load, are as true as the missing device.
    assert found == ["device-unavailable", *ALSO.get(name, [])]


@pytest.mark.parametrize("name", PACKAGES)
def test_on_an_older_gpu(name):
    found, session = causes(case_at(package(name), gpus=gpu("80", "A100")))
    assert found[0] == "gpu-arch-mismatch"
    (item,) = (one for one in session.findings if one.code == "AD-HOST-004")
    assert (item.observed, item.expected) == ("90", "80 (A100)")


def test_on_a_newer_gpu_only_ptx_helps():
    verdicts = {name: causes(case_at(package(name), gpus=gpu("100", "B200")))[0][:1] for name in PACKAGES}
    assert verdicts.pop("mlp_fatbin") == []
    assert set(map(tuple, verdicts.values())) == {("gpu-arch-mismatch",)}


@pytest.mark.parametrize("name", ["mlp", "gpu_const", "mlp_noweights"])
def test_device_code_for_another_gpu_than_the_metadata_says(name, tmp_path):
    other_arch(package(name), tmp_path / "other.pt2")
    found, session = causes(case_at(tmp_path / "other.pt2"))
    assert found[0] == "gpu-arch-mismatch"
    (item,) = (one for one in session.findings if one.code == "AD-HOST-004")
    assert (item.kind, item.observed, item.expected) == ("gpu-code", "sm_70", "sm_90 (GPU)")


def test_under_an_old_driver():
    assert causes(case_at(package("mlp"), cuda_driver="535.10.04"))[0] == ["driver-mismatch"]


@pytest.mark.parametrize("name", PACKAGES)
def test_calls_and_launches(name):
    case = case_at(package(name))
    contract = case.contract
    assert [(call.kind, call.name) for call in contract.kernels] == CALLS.get(name, MLP)
    for call in contract.kernels:
        if call.kind == "triton":
            assert call.device_code.endswith(".fatbin" if name == "mlp_fatbin" else ".cubin")
            assert call.guarded
            assert (len(call.grid), call.warps.isdecimal(), call.shared.isdecimal()) == (3, True, True)
    assert contract.needs.missing_gpu_code == ()
    assert {one.device_type for one in contract.constants} <= {"cuda"}
    assert {leaf.device_type for leaf in contract.leaves} == {"cuda"}
    assert set(contract.buffer_devices.values()) == {"cuda"}
    wanted = ("sm_90a", "compute_90") if name == "mlp_fatbin" else ("sm_90a",)
    assert case.model.gpu_targets == wanted


def test_the_grid_of_a_dynamic_batch_is_known_in_terms_of_it():
    first = case_at(package("mlp")).contract.kernels[1]
    assert first.arguments == ("buf1", "l1_bias", "32*s77")


@pytest.mark.parametrize("name", [one for one in PACKAGES if one != "gpu_const"])
def test_an_empty_batch_is_not_launched(name):
    sizes = (0, 64) if name == "two_kernels" else (0, 16)
    _, session = causes(case_at(package(name), [tensor(*sizes, device="cuda:0")]))
    assert not [one for one in session.findings if one.code == "AD-HOST-014"]


@pytest.mark.parametrize("suffix", [".cubin", ".fatbin"])
def test_device_code_that_is_not_in_the_package(tmp_path, suffix):
    name = "mlp_fatbin" if suffix == ".fatbin" else "mlp"
    with zipfile.ZipFile(package(name)) as source, zipfile.ZipFile(tmp_path / f"{name}.pt2", "w") as target:
        names = [one for one in source.namelist() if one.endswith(suffix)]
        for one in source.namelist():
            if one != names[0]:
                target.writestr(one, source.read(one))
    found, session = causes(case_at(tmp_path / f"{name}.pt2"))
    assert found == ["gpu-arch-mismatch"]
    (item,) = (one for one in session.findings if one.code == "AD-HOST-004")
    assert (item.kind, item.subject) == ("cubin-missing", names[0].rpartition("/")[2])


@pytest.mark.parametrize(("name", "command"), [*((name, "check") for name in PACKAGES), ("mlp_print2", "inspect")])
def test_from_the_command_line_without_torch(name, command, tmp_path):
    """As on a machine that never had torch: neither found nor imported."""
    (tmp_path / "torch.py").write_text("raise SystemError('torch was imported')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor", command, str(package(name)), "--format", "json"],
        capture_output=True, text=True, timeout=60, env=environment, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert report["contract"]["n_kernels"] == len(CALLS.get(name, MLP))
    assert report["contract"]["needs"]["compute_capability"] == "90"
    if command == "inspect":
        assert done.returncode == 0
    else:
        assert (done.returncode, report["diagnoses"][0]["cause"]) == (1, "device-unavailable")
