"""Methods that need nothing but the package and its inputs, each on a real package: what they find, and what they name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import warm
from foundry.cases import Case, Kit, called
from foundry.ops import python_op

pytestmark = pytest.mark.torch

# 500 bytes are there. One too many in the first call, which glibc does not notice; 601 in the second, which it does.
GROWING_OVERRUN = """global CALLS
    buffer = torch.empty(125)
    ctypes.memset(buffer.data_ptr(), 0x41, 501 + 600 * CALLS)
    del buffer
    CALLS += 1
    return x * factor


import ctypes

CALLS = 0"""


def examine(case: Case, kit: Kit, where: Path, *options: str) -> dict:
    """The report of ``aotidoctor run`` on the case."""
    call = case.make(kit, where)
    return json.loads(warm.command("run", *call.arguments(), "--format", "json", *options, env=call.env).stdout)


def found(report: dict, code: str) -> dict:
    return next(item for item in report["findings"] if item["code"] == code)


def glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False


@pytest.mark.skipif(not glibc(), reason="the heap checks are those of glibc")
def test_heap_checks_move_the_abort_to_the_guilty_call(packages: Kit, case_dir: Path) -> None:
    case = called("late", "scale", "custom-op-crash", setup=python_op(body=GROWING_OVERRUN))
    # Called alone the operator dies, too, and that is asked first.
    report = examine(case, packages, case_dir, "--skip-probes", "op_inputs,op_alone,backtrace")
    assert found(report, "AD-RUN-001")["facts"]["stage"] == "run2", report["findings"]
    item = found(report, "AD-RUN-025")
    assert (item["kind"], item["subject"]) == ("moved", "zoopy::scale"), item
    assert (item["facts"]["stage"], item["facts"]["call_kind"], item["facts"]["inside"]) == ("run1", "custom", True)
    first = report["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("custom-op-crash", "zoopy::scale")


def test_rows_that_influence_each_other(packages: Kit, case_dir: Path) -> None:
    item = found(examine(called("crowd", "crowd"), packages, case_dir, "--probes", "sub_batch"), "AD-RUN-019")
    assert (item["kind"], item["subject"], item["severity"]) == ("differs", "result[0]", "info"), item
    assert (item["facts"]["rows"], item["facts"]["of"]) == (4, 8)


def test_rows_that_do_not(packages: Kit, case_dir: Path) -> None:
    report = examine(called("mlp", "mlp"), packages, case_dir, "--probes", "sub_batch")
    assert found(report, "AD-RUN-019")["kind"] == "same", report["findings"]
    assert report["verdict"] == "healthy"


def test_more_threads_than_a_reduction_was_compiled_for(packages: Kit, case_dir: Path) -> None:
    report = examine(called("threads", "total"), packages, case_dir, "--threads", str(8 * (os.cpu_count() or 1)))
    first = report["diagnoses"][0]
    told = (first["cause"], first["subject"], first["status"])
    assert told == ("threads-exceed-build", "cpp_fused_mul_sum_0", "confirmed"), report["findings"]
    assert found(report, "AD-TREAT-001")["facts"]["treatment"] == "threads"


RACE = "return x * factor + (torch.rand_like(x) if torch.get_num_threads() > 1 else 0)"


def test_changing_outputs_that_one_thread_heals(packages: Kit, case_dir: Path) -> None:
    case = called("race", "scale", setup=python_op(body=RACE), options=("--threads", "2"))
    report = examine(case, packages, case_dir)
    assert found(report, "AD-RUN-006")["kind"] == "heals", report["findings"]
    assert report["diagnoses"][0]["cause"] == "threading"


def test_changing_outputs_that_one_thread_leaves(packages: Kit, case_dir: Path) -> None:
    case = called("random", "scale", setup=python_op(body="return torch.rand_like(x)"), options=("--threads", "2"))
    report = examine(case, packages, case_dir)
    assert found(report, "AD-RUN-006")["kind"] == "same", report["findings"]
    assert report["diagnoses"][0]["cause"] == "nondeterministic"


def test_another_order_of_summation_is_rounding(packages: Kit, case_dir: Path) -> None:
    report = examine(called("sum", "total"), packages, case_dir, "--threads", "2", "--probes", "threads")
    assert found(report, "AD-RUN-006")["kind"] in ("same", "rounding"), report["findings"]
    assert report["verdict"] == "healthy"


def test_where_the_time_of_a_load_goes(packages: Kit, case_dir: Path) -> None:
    """With the CPU taken as it is: to ask for its instructions PyTorch compiles for many seconds."""
    words = called("mlp", "mlp").make(packages, case_dir).arguments()
    done = warm.command(
        "run", *words, "--probes", "load_time", "--format", "json", env={"TORCHINDUCTOR_VEC_ISA_OK": "1"}
    )
    item = found(json.loads(done.stdout), "AD-RUN-035")
    parts = dict(zip(item["facts"]["parts"], item["facts"]["seconds"], strict=True))
    assert list(parts) == [
        "import", "imports", "cpu_checks", "unpack", "link", "create", "after_load", "run1", "later call"
    ]  # fmt: skip
    assert min(parts.values()) >= 0
    assert parts["unpack"] > 0
    assert parts["import"] > parts["later call"]
