"""What the probes make of a failure together, end to end on simulated CUDA: the table, its cause, what each tool told.

The same tables are expected of what was recorded of these scenarios (tests/unit/probes/test_cuda_recorded.py).
"""

from __future__ import annotations

import pytest

from tests.cuda_sim.expected import CAUSES, MM, TABLES, TOLD, rows_of

pytestmark = pytest.mark.cuda_sim


def finding(report, code):
    return next(item for item in report["findings"] if item["code"] == code)


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_probes_and_its_cause(examine, name):
    report = examine(name)
    kind, expected = TABLES[name]
    table = finding(report, "AD-RUN-029")
    rows = rows_of(table["facts"])
    assert (table["kind"], {probe: rows.get(probe) for probe in expected}) == (kind, expected)
    assert set(table["facts"]["took_effect"]) == {True}
    subject, code, *told = TOLD[name]
    first = report["diagnoses"][0]
    assert first["cause"] == CAUSES[name]
    assert subject is None or subject in first["title"] + str(first["subject"])
    assert told in [[item["kind"], item["subject"]] for item in report["findings"] if item["code"] == code]


def test_how_far_beyond_which_allocation(examine):
    facts = finding(examine("overrun_sanitized"), "AD-RUN-028")["facts"]
    assert (facts["tool"], facts["side"], facts["symptom"]) == ("memcheck", "after", "cuda-illegal-access")
    assert 0 < facts["beyond"] <= 65536
    assert facts["allocated"] > 0


def test_a_driver_that_writes_no_dump_is_told(examine):
    report = examine("no_core_dump")
    dump = finding(report, "AD-RUN-027")
    assert (dump["kind"], dump["observed"]) == ("unavailable", "the driver wrote no GPU core dump")
    run = next(one for one in report["runs"] if one["probe"] == "core_dump")
    assert (run["took_effect"], run["took_effect_why"]) == (False, "the driver wrote no GPU core dump")
    assert report["diagnoses"][0]["subject"] == MM


@pytest.mark.parametrize("name", ["capture", "capture_variant"])
def test_what_a_capture_does_not_permit(examine, name):
    report = examine(name)
    assert (report["diagnoses"][0]["cause"], report["exit_status"]) == ("cuda-graph-capture", 1)
    run = next(one for one in report["runs"] if one["probe"] == "cuda_variants_capture")
    assert "operation not permitted when stream is capturing" in run["error"]["message"]
    assert run["stage"] == ("run1" if name == "capture" else "capture")


def test_a_number_that_no_gpu_has(examine):
    first = examine("device_index")["diagnoses"][0]
    assert (first["cause"], first["subject"], first["status"]) == ("device-index", "--device", "confirmed")
    assert "invalid device ordinal" in first["looked_like"]


def test_an_invalid_argument_while_the_package_is_loaded(examine):
    report = examine("invalid_argument_at_load")
    plain = next(one for one in report["runs"] if one["probe"] == "plain_run")
    assert (plain["stage"], "CUDA error: invalid argument" in plain["stderr_tail"]) == ("load", True)
    assert report["diagnoses"][0]["cause"] == "load-device"


def test_a_cpu_tensor_that_a_library_gets(examine):
    first = examine("cpu_tensor_in_mm")["diagnoses"][0]
    assert (first["cause"], first["subject"], first["status"]) == ("input-device", "args[0]", "confirmed")
