"""``run`` of real packages of torch 2.6 to 2.12 on this torch: what only running shows; ``check`` judges the rest."""

from __future__ import annotations

import json

import pytest
from warm import CommandLine

from tests.artifacts.machines import needs_vector_units
from tests.artifacts.releases import NEEDS_A_RUN, Sample, samples

pytestmark = [pytest.mark.torch, needs_vector_units]
HEALTHY = [sample for sample in samples() if sample.name == "good"]
FAULTY = [sample for sample in samples() if sample.cause in NEEDS_A_RUN and sample.name != "index_neg"]


def answer(line: CommandLine, sample: Sample, *words: str) -> dict:
    setup = ("--setup", sample.setup) if sample.setup is not None else ()
    done = line("run", sample.package, "-i", sample.inputs, *setup, *words, "--format", "json")
    return json.loads(done.stdout)


@pytest.mark.parametrize("sample", HEALTHY, ids=str)
def test_a_healthy_call_is_healthy(command_line, sample):
    report = answer(command_line, sample)
    assert (report["verdict"], report["diagnoses"]) == ("healthy", []), report["findings"]


@pytest.mark.parametrize("sample", HEALTHY, ids=str)
def test_inputs_that_were_made_up_are_not_held_against_the_model(command_line, sample):
    setup = ("--setup", sample.setup) if sample.setup is not None else ()
    report = json.loads(command_line("run", sample.package, "--generate", *setup, "--format", "json").stdout)
    assert (report["verdict"], report["diagnoses"]) == ("healthy", []), report["findings"]


@pytest.mark.parametrize("sample", FAULTY, ids=str)
def test_what_only_a_run_shows_is_named(command_line, sample):
    report = answer(command_line, sample)
    first = report["diagnoses"][0]
    assert first["cause"] == sample.cause, report["diagnoses"]
    # Of a package of 2.6 nothing tells which inputs are right.
    if sample.release == "2.6.0" and sample.cause != "custom-op-missing":
        assert first["confidence"] <= 0.5 or first["status"] == "confirmed"


SYMPTOMS = ("nondeterministic", "uninitialized-read", "threading")
SILENT = ("batch_differs", "seq_differs", "hidden", "rank", "stride")


@pytest.mark.parametrize("sample", [one for one in samples() if one.release == "2.6.0" and one.name in SILENT], ids=str)
def test_what_nothing_tells_is_unknown_and_not_the_fault_of_the_model(command_line, sample):
    """A package of 2.6 without its program: neither its outputs nor what PyTorch raises is held against the model."""
    report = answer(command_line, sample)
    assert [item["cause"] for item in report["diagnoses"] if item["cause"] in SYMPTOMS] == [], report["diagnoses"]


def test_constants_of_a_library_that_does_not_hand_them_out_are_not_asked_for(command_line):
    """Its entry point is missing in 2.6 and 2.7, and PyTorch calls it all the same: at address 0."""
    sample = next(one for one in HEALTHY if str(one) == "2.7.1-dyn-good")
    report = answer(command_line, sample, "--reference", sample.program)
    assert (report["verdict"], report["diagnoses"]) == ("healthy", []), report["findings"]
