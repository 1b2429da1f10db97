"""Simulated CUDA, end to end: ``aotidoctor run`` on genuine packages while the simulated driver makes things go wrong."""

from __future__ import annotations

import pytest
from scenarios import OLD_DRIVER, PACKAGES, RELU
from simulation import Simulation

pytestmark = pytest.mark.cuda_sim


def first(report):
    assert report["diagnoses"], report["findings"]
    return report["diagnoses"][0]


def run_of(report, probe):
    return next((one for one in report["runs"] if one["probe"] == probe), None)


@pytest.mark.parametrize(
    "name", ["mlp", "mlp_fatbin", "mlp_mmap", "mlp_print2", "mlp_print3", "gpu_const", "two_kernels"]
)
def test_a_genuine_package_loads_and_runs(tmp_path, sample, name):
    inputs = sample("mlp" if name.startswith("mlp") else name)
    report = Simulation(room=tmp_path).report(PACKAGES / f"{name}.pt2", inputs)
    assert (report["verdict"], report["exit_status"]) == ("healthy", 0)
    assert [output["device"] for output in run_of(report, "plain_run")["outputs"]] == ["cuda:0"]
    assert [gpu["name"] for gpu in report["host"]["gpus"]] == ["simulated CUDA H100"]


@pytest.mark.parametrize("name", ["illegal_access", "illegal_access_aborts", "illegal_access_printed"])
def test_the_kernel_of_an_asynchronous_illegal_access_is_named_though_later_ones_were_launched(examine, tmp_path, name):
    report = examine(name)
    assert first(report)["cause"] == "cuda-illegal-access"
    assert RELU in first(report)["title"] + str(first(report)["subject"])
    assert run_of(report, "plain_run")["error"]["type"] == "AcceleratorError"  # at the synchronisation after the call
    log = (tmp_path / "driver.log").read_text()
    assert "launch" in log[: log.index("surfaces 700")].partition("fault 700")[2]


@pytest.mark.parametrize(("name", "ending"), [("illegal_access", "exited"), ("illegal_access_aborts", "signalled")])
def test_with_blocking_launches_torch_raises_or_aborts_and_the_cause_is_the_same(examine, name, ending):
    report = examine(name, "--probes", "plain_run,cuda_blocking")
    assert first(report)["cause"] == "cuda-illegal-access"
    blocking = run_of(report, "cuda_blocking")
    assert blocking["env"]["CUDA_LAUNCH_BLOCKING"] == "1"
    assert (blocking["ending"], blocking["stage"]) == (ending, "run1")


def test_a_fault_that_surfaces_in_an_innocent_cublas_call_is_not_blamed_on_it(examine):
    report = examine("illegal_access_in_cublas")
    assert "CUBLAS_STATUS_EXECUTION_FAILED" in run_of(report, "plain_run")["error"]["message"]
    assert first(report)["cause"] == "cuda-illegal-access"
    assert RELU in first(report)["title"] + str(first(report)["subject"])


def test_a_device_assert_leads_to_the_input_that_the_index_comes_from(examine):
    report = examine("device_assert")
    assert first(report)["cause"] == "cuda-device-assert"
    assert first(report)["subject"] == "args[0]"
    assert "triton_poi_fused_add_index_0" in first(report)["title"]
    assert "Assertion `index out of bounds: 0 <= tmp4 < 40` failed" in run_of(report, "plain_run")["stderr_tail"]


def test_a_misaligned_access_is_an_illegal_one(examine):
    report = examine("misaligned")
    assert first(report)["cause"] == "cuda-illegal-access"
    assert "misaligned address" in first(report)["looked_like"]


@pytest.mark.parametrize("name", ["other_arch", "other_arch_unknown_gpu"])
def test_code_for_another_gpu_loads_and_its_first_launch_fails(examine, name):
    report = examine(name)
    assert first(report)["cause"] == "gpu-arch-mismatch"
    plain = run_of(report, "plain_run")
    assert plain["stage"] == "run1"
    assert "no kernel image is available" in plain["error"]["message"]


def test_a_missing_cubin_is_named(examine):
    report = examine("missing_cubin")
    assert first(report)["cause"] == "gpu-arch-mismatch"
    assert first(report)["subject"].endswith(".cubin")
    assert "file not found" in run_of(report, "plain_run")["error"]["message"]


def test_no_device(examine):
    assert first(examine("no_device"))["cause"] == "device-unavailable"


def test_a_driver_too_old_for_this_torch(examine):
    report = examine("old_driver")
    assert first(report)["cause"] == "driver-mismatch"
    assert OLD_DRIVER in first(report)["title"]


def test_out_of_memory_names_the_operator_behind_the_generic_message(examine):
    report = examine("out_of_memory")
    assert first(report)["cause"] == "out-of-memory"
    assert first(report)["subject"] == "aoti_torch_cuda_mm_out"


def test_a_cpu_tensor_is_an_illegal_access_in_a_package_of_triton_kernels_only(examine):
    report = examine("cpu_tensor")
    assert first(report)["cause"] == "input-device"
    assert first(report)["status"] == "confirmed"
    assert "an illegal memory access" in first(report)["looked_like"]


def test_a_launch_that_the_driver_refuses(examine):
    report = examine("refused_launch")
    assert first(report)["cause"] == "cuda-launch"
    assert "invalid argument" in run_of(report, "plain_run")["error"]["message"]


def test_weights_that_nobody_loaded_are_a_segmentation_fault(examine):
    report = examine("weights_not_loaded")
    assert first(report)["cause"] == "weights-not-loaded"
    assert run_of(report, "plain_run")["signal"] == "SIGSEGV"
