"""What each scenario must lead to: for the runs themselves, and for what was recorded of them."""

from __future__ import annotations

from tests.cuda_sim.scenarios import RELU, SIGMOID

MM = "aoti_torch_cuda_mm_out"
CAUSES = {
    "healthy": None,
    "illegal_access": "cuda-illegal-access",
    "illegal_access_aborts": "cuda-illegal-access",
    "illegal_access_in_cublas": "cuda-illegal-access",
    "illegal_access_printed": "cuda-illegal-access",
    "device_assert": "cuda-device-assert",
    "misaligned": "cuda-illegal-access",
    "cpu_tensor": "input-device",
    "other_arch": "gpu-arch-mismatch",
    "other_arch_unknown_gpu": "gpu-arch-mismatch",
    "missing_cubin": "gpu-arch-mismatch",
    "no_device": "device-unavailable",
    "old_driver": "driver-mismatch",
    "out_of_memory": "out-of-memory",
    "refused_launch": "cuda-launch",
    "fault_in_library": "cuda-illegal-access",
    "no_core_dump": "cuda-illegal-access",
    "library_refuses": "cuda-launch",
    "race": "cuda-race",
    "race_with_default_stream": "cuda-race",
    "race_within_kernel": "cuda-race",
    "overrun": "cuda-illegal-access",
    "overrun_sanitized": "cuda-illegal-access",
    "capture": "cuda-graph-capture",
    "capture_variant": "cuda-graph-capture",
    "cpu_tensor_in_mm": "input-device",
    "device_index": "device-index",
    "invalid_argument_at_load": "load-device",
    "printed_launches": "cuda-illegal-access",
    "weights_not_loaded": "weights-not-loaded",
}

# Of each scenario: what the table says, then probe: failed of runs, and where as far as the probe can tell.
TABLES = {
    "illegal_access": (
        "stable",
        {"plain_run": "1 of 1", "cuda_blocking": f"1 of 1: {RELU}", "launch_trace": f"1 of 1: {RELU}"},
    ),
    "race": (
        "vanishes-blocking",
        {
            "plain_run": "3 of 3",
            "cuda_blocking": "0 of 3",
            "cuda_no_caching": "0 of 1",
            "launch_trace": "0 of 1",
            "cuda_variants_stream": "1 of 1",
        },
    ),
    "race_with_default_stream": (
        "vanishes-blocking",
        {"plain_run": "3 of 3", "cuda_blocking": "0 of 3", "cuda_variants_stream": "0 of 1"},
    ),
    "race_within_kernel": (
        "vanishes-blocking",
        {"plain_run": "3 of 3", "sanitizer_memcheck": "0 of 1", "sanitizer_racecheck": "0 of 1"},
    ),
    "overrun": (
        "moves-uncached",
        {
            "plain_run": "1 of 1",
            "cuda_blocking": f"1 of 1: {SIGMOID}",
            "cuda_no_caching": f"1 of 1: {RELU}",
            "launch_trace": f"1 of 1: {SIGMOID}",
        },
    ),
    "overrun_sanitized": (
        "moves-uncached",
        {"cuda_no_caching": f"1 of 1: {RELU}", "sanitizer_memcheck": f"1 of 1: {RELU}"},
    ),
    "fault_in_library": (
        "stable",
        {
            "cuda_blocking": f"1 of 1: {MM}",
            "launch_trace": f"1 of 1: {MM}",
            "core_dump": "1 of 1: cublasSgemm_v2",
            "sanitizer_memcheck": "1 of 1: cublasSgemm_v2",
        },
    ),
    "library_refuses": ("stable", {"plain_run": "1 of 1", "launch_trace": f"1 of 1: {MM}"}),
}

# What it is by the kernel that the diagnosis names, and by a finding of the probe that the scenario is made for.
TOLD = {
    "illegal_access": (RELU, "AD-RUN-026", "kernel", RELU),
    "race": (None, "AD-RUN-026", "survived", None),
    "race_with_default_stream": ("stream", "AD-RUN-030", "vanishes", "stream"),
    "race_within_kernel": (RELU, "AD-RUN-028", "race", RELU),
    # The kernel that the launch trace names only stumbled over the damage.
    "overrun": (RELU, "AD-RUN-026", "kernel", SIGMOID),
    "overrun_sanitized": (RELU, "AD-RUN-028", "invalid-access", RELU),
    "fault_in_library": ("cublasSgemm_v2", "AD-RUN-027", "exception", "cublasSgemm_v2"),
    "library_refuses": (MM, "AD-RUN-026", "library", MM),
}


def rows_of(facts):
    """Probe to ``failed of runs: where``, out of the columns of the table."""
    columns = (facts[column] for column in ("rungs", "failed", "runs", "places"))
    return {
        probe: f"{failed} of {runs}" + (f": {place.partition(' (call')[0]}" if place else "")
        for probe, failed, runs, place in zip(*columns, strict=True)
    }
