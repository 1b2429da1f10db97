"""Simulated CUDA: the program compiled again, for real, so that it prints its launches. It takes about a minute."""

from __future__ import annotations

import pytest
from scenarios import RELU, SCENARIOS, SIGMOID
from simulation import Simulation, forget_packages

pytestmark = pytest.mark.cuda_sim


def told(report):
    return [item for item in report["findings"] if item["code"] == "AD-RUN-034"]


def test_the_launch_printed_last_names_the_kernel_with_blocking_launches_only(examine, sample, tmp_path):
    forget_packages()
    report = examine("printed_launches")
    named, values = told(report)
    assert (named["kind"], named["subject"]) == ("kernel", RELU)
    # Without them the last line is a later kernel's: the fault comes out when the call is over.
    assert named["facts"]["without_blocking"] == [SIGMOID]
    assert (named["facts"]["failed"], named["facts"]["runs"]) == ([2, 2], [2, 2])
    assert (values["kind"], values["facts"]["arguments"][-1]) == ("values", f"{RELU}_xnumel = 160")
    assert report["localization"]["culprit"] == RELU
    assert (report["diagnoses"][0]["cause"], report["diagnoses"][0]["subject"]) == ("cuda-illegal-access", RELU)
    compiled = [one for one in report["runs"] if one["probe"] == "printed_launches"]
    assert [one["took_effect"] for one in compiled] == [True, True]
    called = [one for one in report["runs"] if one["probe"].startswith("printed_launches_")]
    assert {one["took_effect"] for one in called} == {True}
    assert [one["env"] for one in called[:2]] == [{}, {"CUDA_LAUNCH_BLOCKING": "1"}]

    # Where the process aborts, the lines are there nevertheless; the packages are kept and not compiled again.
    it = SCENARIOS["printed_launches"]
    machine = Simulation(room=tmp_path, knobs={**it.knobs, "STICKY_GETDEVICE": "1"}, toolkit=True)
    aborted = machine.report(it.file(tmp_path), sample(it.inputs), *it.words)
    assert not [one for one in aborted["runs"] if one["probe"] == "printed_launches"]
    blocking = [one for one in aborted["runs"] if one["probe"].startswith("printed_launches_blocking")]
    assert [one["ending"] for one in blocking] == ["signalled", "signalled"]
    assert (told(aborted)[0]["kind"], told(aborted)[0]["subject"]) == ("kernel", RELU)


def test_a_cheaper_probe_that_named_the_kernel_leaves_nothing_to_compile_for(examine):
    report = examine("illegal_access", "--reference", str(SCENARIOS["printed_launches"].options["reference"]))
    assert not told(report)
    reasons = {item["name"]: item["reason"] for item in report["not_checked"]}
    assert "AD-RUN-026 has told it without a compile" in reasons["printed_launches"]
