"""Probes for CUDA beyond the launch trace, on recorded outcomes. None was recorded on hardware."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.case import Gpu
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.run import Request, Signalled, Trace, TracedCall
from aotidoctor.probes import core_dump, cuda_blocking, cuda_no_caching, cuda_variants, failure_rates, sanitizer
from aotidoctor.probes.probe import Reuse
from aotidoctor.probes.tool_effects import add_effect
from tests.unit.probes.outcomes import case, history, outcome, raised
from tests.unit.probes.test_probes import OK, finding, one

IMA = "CUDA error: an illegal memory access was encountered"
FAULT = raised(IMA, type="AcceleratorError", stage="scan")
OOM = raised("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB", stage="run1")
ASSERT = raised("CUDA error: device-side assert triggered", stage="scan")
ABORT = Signalled(signal=6, name="SIGABRT")
KERNELS = (
    KernelCall(name="aoti_torch_cuda_mm_out", kind="extern"),
    KernelCall(name="triton_poi_fused_add_0", kind="triton"),
    KernelCall(name="triton_poi_fused_mul_1", kind="triton"),
)


def gpu_case(*, tools=(), gpus=1, **options):
    made = case(device="cuda", **options)
    host = replace(
        made.host,
        tools={name: f"/opt/cuda/bin/{name}" for name in tools},
        gpus=tuple(Gpu(index=index, name="simulated") for index in range(gpus)),
    )
    return replace(made, host=host, contract=replace(made.contract, kernels=KERNELS))


def trace(*symbols):
    calls = tuple(TracedCall(symbol=symbol, argument=0, at=at * 1e-6) for at, symbol in enumerate(symbols))
    return Trace(calls=calls, total=len(calls), slots=4, marks=(0,))


def requests(plan):
    return [part.probe for part in (plan if isinstance(plan, tuple) else (plan,)) if isinstance(part, Request)]


def reasons(plan):
    return " | ".join(
        part.reason for part in (plan if isinstance(plan, tuple) else (plan,)) if isinstance(part, NotChecked)
    )


# Blocking launches, with and without the caching allocator


@pytest.mark.parametrize(
    "failed",
    [
        {"error": FAULT.error, "ending": FAULT.ending},
        {"ending": ABORT, "stderr_tail": f"terminate called\n  what():  {IMA}\n"},
    ],
    ids=["raises", "aborts"],
)
def test_an_exception_and_an_abort_are_the_same_finding(failed):
    done = outcome("cuda_blocking", stage="run1", trace=trace("aoti_torch_cuda_mm_out", "cuLaunchKernel"), **failed)
    item = one(cuda_blocking.PROBE.read(gpu_case(), history(plain_run=FAULT), done))
    assert (item.facts["symptom"], item.facts["call"], item.facts["number"]) == (
        "cuda-illegal-access",
        "triton_poi_fused_add_0",
        2,
    )
    assert item.severity is Severity.ERROR


def test_a_launch_is_not_named_where_the_wrapper_has_another_order():
    done = raised(IMA, trace=trace("cuLaunchKernel"))
    item = one(cuda_blocking.PROBE.read(gpu_case(), history(plain_run=FAULT), done))
    assert item.facts["call"] == "cuLaunchKernel"


def test_an_assertion_does_not_depend_on_the_allocator():
    assert isinstance(cuda_blocking.PROBE.plan(gpu_case(), history(plain_run=ASSERT)), Request)
    assert "cuda-assert" in cuda_no_caching.PROBE.plan(gpu_case(), history(plain_run=ASSERT)).reason


def test_a_failure_of_the_second_call_is_repeated_with_two_calls():
    late = raised(IMA, stage="run2", stages={"run1": 0.1})
    assert cuda_blocking.PROBE.plan(gpu_case(), history(plain_run=late)).payload.calls == 2
    assert cuda_blocking.PROBE.plan(gpu_case(), history(plain_run=FAULT)).payload.calls == 1


@pytest.mark.parametrize(
    ("seen", "forked", "expected"),
    [({"CUDA_LAUNCH_BLOCKING": True}, False, True), ({}, False, None), ({}, True, False)],
)
def test_whether_the_variable_acted(seen, forked, expected):
    done = outcome("cuda_blocking", result={"env_took_effect": seen}, forked=forked)
    done = replace(done, request=replace(done.request, env={"CUDA_LAUNCH_BLOCKING": "1"}))
    assert add_effect(gpu_case(), done).took_effect is expected


# Core dump

DUMP = """=== gpu-core
Opening GPU coredump: /tmp/run/gpu.core
[Current focus set to CUDA kernel 0, grid 9, cluster (0,0,0), block (15,0,0), thread (96,0,0), device 0, sm 124, warp 3, lane 0]

CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x7ff533bb91d0 (ctwo.py:31)
#0  0x00007ff533bb91e0 in triton_poi_fused_add_0<<<(16,1,1),(128,1,1)>>> () at ctwo.py:31
"""


def test_the_thread_that_faulted_is_read_from_the_dump():
    done = outcome("core_dump", ending=ABORT, stage="run1", debugger_output=DUMP)
    item = one(core_dump.read(gpu_case(), history(plain_run=FAULT), done))
    assert (item.kind, item.subject, item.severity) == ("exception", "triton_poi_fused_add_0", Severity.ERROR)
    wanted = {"block": "15,0,0", "thread": "96,0,0", "line": "31", "symptom": "cuda-illegal-access"}
    assert wanted.items() <= item.facts.items()


@pytest.mark.parametrize(
    ("exception", "symptom"),
    [
        ("Warp Misaligned Address", "cuda-misaligned"),
        ("Warp Assert", "cuda-assert"),
        ("Device Unknown Exception", "other"),
    ],
)
def test_exceptions_of_the_debugger_in_the_words_of_the_runtime(exception, symptom):
    done = outcome("core_dump", debugger_output=DUMP.replace("Warp Illegal Address", exception))
    assert one(core_dump.read(gpu_case(), history(plain_run=FAULT), done)).facts["symptom"] == symptom


def test_no_dump_is_told():
    done = outcome("core_dump", ending=ABORT, debugger_problem="the driver wrote no GPU core dump")
    item = one(core_dump.read(gpu_case(), history(plain_run=FAULT), done))
    assert (item.kind, item.observed) == ("unavailable", "the driver wrote no GPU core dump")


def test_a_dump_is_asked_for_where_the_launch_trace_could_not_name_the_kernel():
    with_tool, extern = gpu_case(tools=["cuda-gdb"]), finding("AD-RUN-026", "extern")
    request = core_dump.plan(with_tool, history(extern, plain_run=FAULT))
    assert request.gpu_core
    assert request.env["CUDA_COREDUMP_FILE"] == "{run_dir}/gpu.core"
    assert "skip_global_memory" in request.env["CUDA_COREDUMP_GENERATION_FLAGS"]
    assert request.payload.file_limit == core_dump.MAX_BYTES
    known = core_dump.plan(with_tool, history(finding("AD-RUN-026", "kernel"), plain_run=FAULT))
    assert "named the kernel" in reasons(known)
    assert "conda install" in reasons(core_dump.plan(gpu_case(), history(extern, plain_run=FAULT)))
    segv = outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    assert "no kernel faulted" in reasons(core_dump.plan(with_tool, history(plain_run=segv)))


# compute-sanitizer

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at triton_poi_fused_add_0+0x70 in ctwo.py:31
=========     by thread (96,0,0) in block (15,0,0)
=========     Access to 0x79fd33fd0980 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x79fd33c00000 of size 4,096 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at triton_poi_fused_mul_1+0x90 in ctwo.py:40
=========     by thread (97,0,0) in block (15,0,0)
=========     Address 0x79fd33fd0984 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to cudaDeviceSynchronize.
=========
========= ERROR SUMMARY: 3 errors
"""
OLD = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at 0x1a0 in triton_poi_fused_add_0
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f8a12345679 is misaligned
========= ERROR SUMMARY: 1 error
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at triton_red_fused_sum_1+0x130 in ctwo.py:9
=========     and Read access at triton_red_fused_sum_1+0x160 in ctwo.py:12 [34 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
UNWRITTEN = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at triton_poi_fused_add_0+0x130 in ctwo.py:8
=========     by thread (0,0,0) in block (0,0,0)
========= ERROR SUMMARY: 257 errors
"""


def sanitized(text, tool="memcheck"):
    done = outcome(f"sanitizer_{tool}", tool_output=text)
    return one(sanitizer.read(gpu_case(), history(plain_run=FAULT), done))


def test_the_first_bad_access_is_the_one_that_counts():
    item = sanitized(MEMCHECK)
    assert (item.kind, item.subject, item.severity) == ("invalid-access", "triton_poi_fused_add_0", Severity.ERROR)
    wanted = {
        "access": "write",
        "size": 4,
        "address": "0x79fd33fd0980",
        "thread": "96,0,0",
        "block": "15,0,0",
        "beyond": 1,
        "side": "after",
        "allocated": 4096,
        "file": "ctwo.py",
        "line": 31,
        "reports": 2,
        "total": 3,
        "other_kernels": ("triton_poi_fused_mul_1",),
        "symptom": "cuda-illegal-access",
    }
    assert wanted.items() <= item.facts.items()


@pytest.mark.parametrize(
    ("text", "tool", "kind", "subject", "facts"),
    [
        (OLD, "memcheck", "invalid-access", "triton_poi_fused_add_0", {"symptom": "cuda-misaligned", "access": "read"}),
        (RACE, "racecheck", "race", "triton_red_fused_sum_1", {"hazards": 34, "line": 9}),
        (UNWRITTEN, "initcheck", "uninitialized", "triton_poi_fused_add_0", {"total": 257, "line": 8}),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", "memcheck", "clean", None, {}),
        ("========= COMPUTE-SANITIZER\n", "memcheck", "unavailable", None, {}),
        ("", "memcheck", "unavailable", None, {"tool": "memcheck"}),
    ],
)
def test_reports_of_each_tool(text, tool, kind, subject, facts):
    item = sanitized(text, tool)
    assert (item.kind, item.subject) == (kind, subject)
    assert facts.items() <= item.facts.items()


@pytest.mark.parametrize(
    ("plain", "findings", "expected"),
    [
        (FAULT, (), ["sanitizer_memcheck"]),
        (ASSERT, (), []),
        (
            FAULT,
            (finding("AD-RUN-012", "vanishes"),),
            ["sanitizer_memcheck", "sanitizer_initcheck", "sanitizer_racecheck"],
        ),
        (OK, (finding("AD-RUN-002", "differs"),), ["sanitizer_initcheck", "sanitizer_racecheck"]),
        (OK, (), []),
    ],
)
def test_each_tool_is_asked_only_where_it_can_tell(plain, findings, expected):
    plan = sanitizer.plan(gpu_case(tools=["compute-sanitizer"]), history(*findings, plain_run=plain))
    assert requests(plan) == expected


def test_the_child_is_started_under_the_tool():
    request = sanitizer.plan(gpu_case(tools=["compute-sanitizer"], timeout=30.0), history(plain_run=FAULT))[0]
    assert request.wrapper[:3] == ("/opt/cuda/bin/compute-sanitizer", "--tool", "memcheck")
    assert "{run_dir}/tool.log" in request.wrapper
    assert request.env == {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    assert request.timeout == 300.0
    assert "conda install" in reasons(sanitizer.plan(gpu_case(), history(plain_run=FAULT)))


# Variants


@pytest.mark.parametrize(
    ("about", "plain", "findings", "expected"),
    [
        (gpu_case(), FAULT, (), []),
        (gpu_case(gpus=2), FAULT, (), ["cuda_variants_device"]),
        (gpu_case(), FAULT, (finding("AD-RUN-012", "vanishes"),), ["cuda_variants_stream"]),
        (gpu_case(), OOM, (), ["cuda_variants_expandable"]),
        (gpu_case(gpus=2), OOM, (), ["cuda_variants_expandable"]),
        (gpu_case(), OK, (), []),
        (gpu_case(rungs=("cuda_variants",)), OK, (), ["cuda_variants_capture"]),
    ],
)
def test_each_variant_is_asked_only_where_it_can_decide(about, plain, findings, expected):
    assert requests(cuda_variants.plan(about, history(*findings, plain_run=plain))) == expected


def test_the_other_device_is_one_that_was_not_used():
    assert cuda_variants.other_device(gpu_case()) == 1
    assert cuda_variants.other_device(replace(gpu_case(), options=replace(gpu_case().options, device="cuda:1"))) == 0


def test_memory_in_pieces_is_told_from_too_little_memory():
    told = {"cuda_memory": {"free": 3 << 30, "total": 8 << 30}}
    done = outcome("cuda_variants_expandable", result=told)
    item = one(cuda_variants.read(gpu_case(), history(plain_run=OOM), done))
    assert (item.kind, item.facts["variant"], item.severity) == ("vanishes", "expandable", Severity.WARN)
    assert (item.facts["asked_bytes"], item.facts["fits_free"]) == (2 << 30, True)
    same = replace(
        done, error=OOM.error, ending=OOM.ending, result={"cuda_memory": {"free": 1 << 30, "total": 8 << 30}}
    )
    item = one(cuda_variants.read(gpu_case(), history(plain_run=OOM), same))
    assert (item.kind, item.severity, item.facts["fits_free"]) == ("same", Severity.INFO, False)


def test_a_variant_that_fails_where_the_plain_run_did_not_is_told():
    done = raised("CUDA error: operation not permitted when stream is capturing", stage="capture")
    done = replace(done, request=replace(done.request, probe="cuda_variants_capture"))
    item = one(cuda_variants.read(gpu_case(), history(plain_run=OK), done))
    assert (item.kind, item.facts["symptom"], item.severity) == ("fails", "cuda-capture", Severity.ERROR)
    assert one(cuda_variants.read(gpu_case(), history(plain_run=OK), replace(OK, request=done.request))).kind == "works"


def test_a_variant_that_never_came_to_the_call_tells_nothing():
    done = outcome("cuda_variants_device", ending=Signalled(signal=11, name="SIGSEGV"), stage="load")
    item = one(cuda_variants.read(gpu_case(), history(plain_run=FAULT), done))
    assert (item.kind, item.severity) == ("unavailable", Severity.INFO)


# The table

BLOCKED = replace(raised(IMA, trace=trace("aoti_torch_cuda_mm_out", "cuLaunchKernel")), took_effect=True)
ELSEWHERE = replace(raised(IMA, trace=trace("aoti_torch_cuda_mm_out")), took_effect=True)
RETURNED = replace(outcome("cuda_blocking"), took_effect=True)
# What a library says of a fault that comes out in it.
ECHO = raised("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle, opa, opb)`")


def table(**outcomes):
    return one(failure_rates.read(gpu_case(), history(**outcomes), outcomes["plain_run"]))


def many(probe, *outcomes):
    return {probe if number == 1 else f"{probe}#{number}": one for number, one in enumerate(outcomes, 1)}


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ({**many("plain_run", FAULT, FAULT, FAULT), **many("cuda_blocking", RETURNED, RETURNED, RETURNED)}, "vanishes-blocking"),
        ({"plain_run": FAULT, "cuda_blocking": RETURNED}, "undecided"),
        ({**many("plain_run", FAULT, OK, FAULT), **many("cuda_blocking", RETURNED, RETURNED, RETURNED)}, "flaky"),
        ({**many("plain_run", FAULT, FAULT, FAULT), **many("cuda_blocking", RETURNED, BLOCKED, RETURNED)}, "undecided"),
        ({"plain_run": FAULT, "cuda_blocking": BLOCKED, "cuda_no_caching": ELSEWHERE}, "moves-uncached"),
        ({"plain_run": FAULT, "cuda_blocking": RETURNED, "cuda_no_caching": ELSEWHERE}, "moves-uncached"),
        ({"plain_run": FAULT, "cuda_blocking": BLOCKED, "cuda_no_caching": replace(ELSEWHERE, took_effect=False)}, "stable"),
        ({"plain_run": FAULT, "cuda_blocking": BLOCKED, "cuda_no_caching": BLOCKED}, "stable"),
        ({"plain_run": FAULT, "cuda_blocking": ASSERT}, "undecided"),
        ({"plain_run": FAULT, "cuda_blocking": ECHO}, "stable"),
        ({"plain_run": ECHO, "cuda_blocking": ECHO}, "stable"),
    ],
)  # fmt: skip
def test_the_pattern_of_the_probes(outcomes, kind):
    item = table(**outcomes)
    assert item.kind == kind
    assert (item.severity is Severity.ERROR) == (kind in ("vanishes-blocking", "moves-uncached"))


def test_the_table_has_a_row_for_each_probe_in_the_order_of_the_probes():
    item = table(sanitizer_memcheck=OK, cuda_blocking=BLOCKED, plain_run=FAULT, threads=OK)
    assert item.facts["rungs"] == ("plain_run", "cuda_blocking", "sanitizer_memcheck")
    assert item.facts["runs"] == (1, 1, 1)
    assert item.facts["failed"] == (1, 1, 0)
    assert item.facts["seen"] == ("cuda-illegal-access", "cuda-illegal-access", "")
    assert item.facts["places"] == ("", "triton_poi_fused_add_0 (call 2)", "")


def test_what_moves_is_put_down_to_the_call_that_fails_without_the_cache():
    moved = {"plain_run": FAULT, "cuda_blocking": BLOCKED, "cuda_no_caching": ELSEWHERE}
    assert table(**moved).subject == "aoti_torch_cuda_mm_out"
    assert table(**{**moved, "cuda_no_caching": BLOCKED}).subject is None


def test_what_vanishes_is_repeated_before_it_counts():
    about = history(plain_run=FAULT, cuda_blocking=RETURNED)
    plan = failure_rates.plan(gpu_case(), about)
    assert requests(plan) == ["plain_run#2", "cuda_blocking#2", "plain_run#3", "cuda_blocking#3"]
    assert plan[-1] == Reuse(probe="plain_run")
    assert failure_rates.read(gpu_case(), about, outcome("plain_run#2")) == []


def test_what_stays_is_not_repeated():
    assert failure_rates.plan(gpu_case(), history(plain_run=FAULT, cuda_blocking=BLOCKED)) == (
        Reuse(probe="plain_run"),
    )
    assert "no other probe" in reasons(failure_rates.plan(gpu_case(), history(plain_run=FAULT)))
