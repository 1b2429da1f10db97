"""Simulated CUDA, end to end: ``aotidoctor run`` on genuine packages while the simulated driver makes things go wrong."""

from __future__ import annotations

import zipfile

import pytest
from simulation import OLD_DRIVER, PACKAGES, Gpu, Simulation

pytestmark = pytest.mark.cuda_sim

RELU = "triton_poi_fused_addmm_relu_0"
A100 = Gpu(capability="8.0", name="simulated CUDA A100")
UNKNOWN_GPU = Gpu(capability="8.0", name="simulated CUDA")
SMALL = Gpu(memory=24 << 20)
NO_GPU = Gpu(devices=0)
OLD = Gpu(driver=OLD_DRIVER, cuda=12000)


@pytest.fixture
def examine(tmp_path, sample):
    """``examine(package, gpu=..., FAULT=...)``: the report of the run on a simulated machine."""

    def run(package, *options, inputs=None, gpu=None, **knobs):
        path = package if hasattr(package, "name") else PACKAGES / f"{package}.pt2"
        machine = Simulation(room=tmp_path, gpu=gpu or Gpu(), knobs=knobs)
        return machine.report(path, sample(inputs or path.stem.partition("_print")[0]), *options)

    return run


def first(report):
    assert report["diagnoses"], report["findings"]
    return report["diagnoses"][0]


def run_of(report, probe):
    return next((one for one in report["runs"] if one["probe"] == probe), None)


@pytest.mark.parametrize("name", ["mlp", "gpu_const", "two_kernels"])
def test_a_genuine_package_loads_and_runs(examine, name):
    report = examine(name)
    assert (report["verdict"], report["exit_status"]) == ("healthy", 0)
    assert [output["device"] for output in run_of(report, "plain_run")["outputs"]] == ["cuda:0"]


@pytest.mark.parametrize("name", ["mlp_fatbin", "mlp_mmap", "mlp_print2", "mlp_print3"])
def test_the_other_ways_to_package_run_too(examine, name):
    assert examine(name, inputs="mlp")["verdict"] == "healthy"


def test_the_machine_says_that_it_is_simulated(examine):
    report = examine("gpu_const")
    assert [gpu["name"] for gpu in report["host"]["gpus"]] == ["simulated CUDA H100"]


def test_an_asynchronous_illegal_access_surfaces_late_and_its_kernel_is_known_with_blocking_launches(examine, tmp_path):
    report = examine("mlp", FAULT=f"{RELU}:700")
    assert first(report)["cause"] == "cuda-illegal-access"
    assert run_of(report, "plain_run")["error"]["type"] == "AcceleratorError"  # at the synchronisation after the call
    log = (tmp_path / "driver.log").read_text()
    plain = log[: log.index("surfaces 700")]
    assert "launch" in plain.partition("fault 700")[2]  # later kernels were launched before anybody knew


@pytest.mark.parametrize(("reading", "ending"), [("0", "exited"), ("1", "signalled")])
def test_with_blocking_launches_torch_raises_or_aborts_and_the_cause_is_the_same(examine, reading, ending):
    options = ("--rungs", "plain_run,cuda_blocking")
    report = examine("mlp", *options, FAULT=f"{RELU}:700", STICKY_GETDEVICE=reading)
    assert first(report)["cause"] == "cuda-illegal-access"
    blocking = run_of(report, "cuda_blocking")
    assert blocking["env"]["CUDA_LAUNCH_BLOCKING"] == "1"
    assert blocking["ending"] == ending
    assert blocking["stage"] == "run1"


def test_a_fault_that_surfaces_in_an_innocent_cublas_call_is_not_blamed_on_it(examine):
    report = examine("mlp", FAULT=f"{RELU}:700", SURFACE="launch")
    assert "CUBLAS_STATUS_EXECUTION_FAILED" in run_of(report, "plain_run")["error"]["message"]
    assert first(report)["cause"] == "cuda-illegal-access"


def test_a_device_assert_leads_to_the_input_that_the_index_comes_from(examine):
    report = examine("gpu_const", FAULT="triton_poi_fused_add_index_0:710")
    assert first(report)["cause"] == "cuda-device-assert"
    assert first(report)["subject"] == "args[0]"
    assert "triton_poi_fused_add_index_0" in first(report)["title"]
    assert "Assertion `index out of bounds: 0 <= tmp4 < 40` failed" in run_of(report, "plain_run")["stderr_tail"]


def test_a_misaligned_access_is_an_illegal_one(examine):
    report = examine("two_kernels", FAULT="triton_per_fused:716")
    assert first(report)["cause"] == "cuda-illegal-access"
    assert "misaligned address" in first(report)["looked_like"]


@pytest.mark.parametrize("gpu", [A100, UNKNOWN_GPU])
def test_code_for_another_gpu_loads_and_its_first_launch_fails(examine, gpu):
    report = examine("mlp", gpu=gpu)
    assert first(report)["cause"] == "gpu-arch-mismatch"
    plain = run_of(report, "plain_run")
    assert plain["stage"] == "run1"
    assert "no kernel image is available" in plain["error"]["message"]


def test_a_missing_cubin_is_named(examine, tmp_path):
    broken = tmp_path / "mlp.pt2"
    gone = copy_without(PACKAGES / "mlp.pt2", broken, ".cubin")
    report = examine(broken)
    assert first(report)["cause"] == "gpu-arch-mismatch"
    assert first(report)["subject"] == gone.rpartition("/")[2]
    assert "file not found" in run_of(report, "plain_run")["error"]["message"]


def copy_without(source, target, suffix):
    """Copy a package without its first member that ends so; the name of that member."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        gone = next(name for name in old.namelist() if name.endswith(suffix))
        for name in old.namelist():
            if name != gone:
                new.writestr(name, old.read(name))
    return gone


def test_no_device(examine):
    report = examine("mlp", inputs="mlp-cpu", gpu=NO_GPU)
    assert "device-unavailable" in [one["cause"] for one in report["diagnoses"]]


def test_a_driver_too_old_for_this_torch(examine):
    report = examine("mlp", gpu=OLD)
    assert first(report)["cause"] == "driver-mismatch"
    assert OLD_DRIVER in first(report)["title"]


def test_out_of_memory_names_the_operator_behind_the_generic_message(examine):
    report = examine("mlp", gpu=SMALL)
    assert first(report)["cause"] == "out-of-memory"
    assert first(report)["subject"] == "aoti_torch_cuda_mm_out"


def test_a_cpu_tensor_is_an_illegal_access_in_a_package_of_triton_kernels_only(examine):
    report = examine("two_kernels", inputs="two_kernels-cpu")
    assert first(report)["cause"] == "input-device"
    assert first(report)["status"] == "confirmed"
    assert "an illegal memory access" in first(report)["looked_like"]


def test_a_launch_that_the_driver_refuses(examine):
    report = examine("two_kernels", REFUSE="triton_per_fused:1")
    assert first(report)["cause"] == "cuda-launch"
    assert "invalid argument" in run_of(report, "plain_run")["error"]["message"]


def test_weights_that_nobody_loaded_are_a_segmentation_fault(examine):
    report = examine("mlp_noweights", inputs="mlp")
    assert first(report)["cause"] == "weights-not-loaded"
    assert run_of(report, "plain_run")["signal"] == "SIGSEGV"
