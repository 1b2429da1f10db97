"""The ladder on simulated CUDA, end to end: which kernel is named, what each probe says, how the probes compare."""

from __future__ import annotations

import pytest
from simulation import ROOT, Gpu, Simulation

pytestmark = pytest.mark.cuda_sim

RELU = "triton_poi_fused_addmm_relu_0"
LATER = "triton_poi_fused_addmm_mul_sigmoid_1"


@pytest.fixture
def examine(tmp_path, sample):
    def run(package, *options, gpu=None, **knobs):
        machine = Simulation(room=tmp_path, gpu=gpu or Gpu(), knobs=knobs)
        path = ROOT / "tests" / "data" / "cuda" / f"{package}.pt2"
        return machine.report(path, sample(package.partition("_print")[0]), *options)

    return run


def found(report, code):
    return next((item for item in report["findings"] if item["code"] == code), None)


def outcome_of(report, probe):
    return next((one for one in report["runs"] if one["probe"] == probe), None)


@pytest.mark.parametrize(
    "knobs", [{}, {"STICKY_GETDEVICE": "1"}, {"SURFACE": "launch"}], ids=["raises", "aborts", "surfaces at a launch"]
)
def test_the_kernel_of_an_asynchronous_fault_is_named_without_compiling_again(examine, knobs):
    report = examine("mlp", FAULT=f"{RELU}:700", **knobs)
    trace = found(report, "AD-RUN-026")
    assert (trace["kind"], trace["subject"], trace["facts"]["error"]) == ("kernel", RELU, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert trace["facts"]["grid"] == [2, 1, 1]
    assert outcome_of(report, "launch_trace")["took_effect"] is True
    assert report["localization"]["culprit"] == RELU
    assert (report["diagnoses"][0]["cause"], report["diagnoses"][0]["subject"]) == ("cuda-illegal-access", RELU)


def test_the_kernel_that_is_printed_last_is_the_wrong_one(examine):
    report = examine("mlp_print3", "--probes", "launch_trace", FAULT=f"{RELU}:700")
    printed = [line for line in outcome_of(report, "plain_run")["stdout_tail"].splitlines() if "launch: triton" in line]
    assert LATER in printed[-1]
    assert found(report, "AD-RUN-026")["subject"] == RELU


def test_a_refused_launch_is_named_with_its_grid(examine):
    report = examine("two_kernels", "--probes", "launch_trace", REFUSE="triton_per_fused:1")
    trace = found(report, "AD-RUN-026")
    assert (trace["kind"], trace["facts"]["grid"]) == ("refused", [5, 1, 1])
    assert report["diagnoses"][0]["cause"] == "cuda-launch"


def test_probes_that_agree_are_stable_and_not_repeated(examine):
    report = examine("mlp", FAULT=f"{RELU}:700")
    table = found(report, "AD-RUN-029")
    assert table["kind"] == "stable"
    assert set(table["facts"]["runs"]) == {1}
    assert {"plain_run", "cuda_blocking", "cuda_no_caching", "launch_trace"} <= set(table["facts"]["rungs"])


def test_what_is_not_installed_is_told_with_how_to_get_it(examine):
    report = examine("mlp", FAULT=f"{RELU}:700")
    reasons = {item["name"]: item["reason"] for item in report["not_checked"]}
    assert "conda install" in reasons["sanitizer"]
    assert "named the kernel" in reasons["core_dump"]


def test_a_healthy_call_needs_no_probe(examine):
    report = examine("mlp")
    assert report["verdict"] == "healthy"
    assert outcome_of(report, "cuda_blocking") is None
    assert outcome_of(report, "launch_trace") is None


def test_an_out_of_memory_is_tried_with_segments_that_grow_and_with_nothing_else(examine):
    report = examine("mlp", gpu=Gpu(memory=24 << 20))
    asked = {one["probe"]: one["env"] for one in report["runs"] if one["probe"].startswith("cuda_")}
    assert asked == {"cuda_variants_expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}
    reasons = {item["name"]: item["reason"] for item in report["not_checked"]}
    assert "no second GPU" in reasons["cuda_variants device"]
    assert "cuda-oom" in reasons["launch_trace"]
