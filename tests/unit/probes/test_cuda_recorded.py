"""Readings of what runs on simulated CUDA gave, recorded by tests/cuda_sim/record.py; no torch and no driver needed."""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict, deque
from dataclasses import replace

import pytest

from aotidoctor.model.case import Options
from aotidoctor.model.report import Status
from aotidoctor.triage import examine, recompile_and_bisect
from aotidoctor.triage.open_case import open_case
from aotidoctor.triage.state import Session
from tests.cuda_sim.expected import CAUSES, MM, TABLES, TOLD, rows_of
from tests.cuda_sim.recorded import load
from tests.cuda_sim.scenarios import PACKAGES, RECORDED, RELU, SCENARIOS, SIGMOID


class Replay(Session):
    """A session whose runs all happened before: one that was not recorded is not made."""

    def run(self, request):
        waiting = self.recorded[request.probe]
        if not waiting:
            return None
        outcome = waiting.popleft()
        if request.job == "recompile":
            # What the compile made is not kept; these were made of the same program, in the same way.
            shutil.copy(PACKAGES / f"mlp_print{request.payload.printer}.pt2", request.payload.target)
            outcome = replace(outcome, request=request)
        self.runs.append(outcome)
        return outcome


def replayed(name, room):
    """The session over the recorded runs of a scenario, and its causes."""
    it = SCENARIOS[name]
    document = json.loads((RECORDED / f"{name}.json").read_text())
    case, unread = open_case(str(it.file(room)), str(RECORDED / f"{it.inputs}.pt"), Options(**it.options), os.environ)
    assert not unread
    host = replace(load(document["host"]), tmpdir=case.host.tmpdir)
    session = Replay(case=replace(case, host=host), runner=None)
    session.recorded = defaultdict(deque)
    for one in map(load, document["runs"]):
        session.recorded[one.request.probe].append(one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(room))
        patch.setattr(recompile_and_bisect, "compiler_of", lambda tools: tools.get("g++"))
        causes, interrupted = examine.examine(session)
    assert not interrupted
    broken = [item.reason for item in session.not_checked if item.is_fault]
    assert not broken
    return session, causes


def symptoms(session):
    """Symptom of each run's ending, by code."""
    return {item.code: item.facts["symptom"] for item in session.findings if "symptom" in item.facts}


def test_every_scenario_has_an_expected_cause():
    assert CAUSES.keys() == SCENARIOS.keys()


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_cause_of_recorded_runs(name, tmp_path):
    _, causes = replayed(name, tmp_path)
    assert (causes[0].cause if causes else None) == CAUSES[name]


SYMPTOMS = {
    "illegal_access": "cuda-illegal-access",
    "illegal_access_in_cublas": "cuda-illegal-access",
    "device_assert": "cuda-assert",
    "misaligned": "cuda-misaligned",
    "other_arch": "cuda-no-image",
    "out_of_memory": "cuda-oom",
    "library_refuses": "gpu-library",
    "capture": "cuda-capture",
    "device_index": "cuda-device-index",
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_the_symptom_of_the_plain_run(name, tmp_path):
    session, _ = replayed(name, tmp_path)
    assert symptoms(session)["AD-RUN-001"] == SYMPTOMS[name]


@pytest.mark.parametrize(("name", "kind"), [("illegal_access", "raised"), ("illegal_access_aborts", "signalled")])
def test_blocking_launches_raise_or_abort(name, kind, tmp_path):
    session, _ = replayed(name, tmp_path)
    blocking = next(item for item in session.findings if item.code == "AD-RUN-012")
    assert (blocking.kind, blocking.facts["symptom"]) == (kind, "cuda-illegal-access")


@pytest.mark.parametrize("name", ["illegal_access", "illegal_access_in_cublas", "illegal_access_printed"])
def test_the_failing_kernel_is_the_first_whose_synchronisation_fails_not_the_last_one_launched(name, tmp_path):
    session, causes = replayed(name, tmp_path)
    launch = next(item for item in session.findings if item.code == "AD-RUN-026")
    assert launch.subject == RELU
    assert RELU in (causes[0].title + str(causes[0].subject))


def test_the_index_of_an_assert_is_followed_to_the_input(tmp_path):
    _, causes = replayed("device_assert", tmp_path)
    assert causes[0].subject == "args[0]"


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_probes(name, tmp_path):
    session, causes = replayed(name, tmp_path)
    table = next(item for item in session.findings if item.code == "AD-RUN-029")
    kind, expected = TABLES[name]
    rows = rows_of(table.facts)
    assert (table.kind, {probe: rows.get(probe) for probe in expected}) == (kind, expected)
    subject, code, *told = TOLD[name]
    assert told in [[item.kind, item.subject] for item in session.findings if item.code == code]
    assert subject is None or subject in causes[0].title + str(causes[0].subject)


def test_what_is_damaged_by_another_kernel_is_not_blamed(tmp_path):
    """The launch trace names the kernel that stumbles; without the caching allocator the one that writes faults itself."""
    session, causes = replayed("overrun", tmp_path)
    assert next(item for item in session.findings if item.code == "AD-RUN-026").subject == SIGMOID
    assert RELU in causes[0].title


def test_the_dump_names_the_kernel_of_a_library(tmp_path):
    session, causes = replayed("fault_in_library", tmp_path)
    dump = next(item for item in session.findings if item.code == "AD-RUN-027")
    assert (dump.kind, dump.subject, dump.facts["symptom"]) == ("exception", "cublasSgemm_v2", "cuda-illegal-access")
    assert "cublasSgemm_v2" in causes[0].title


def test_a_driver_that_writes_no_dump(tmp_path):
    session, causes = replayed("no_core_dump", tmp_path)
    dump = next(item for item in session.findings if item.code == "AD-RUN-027")
    assert (dump.kind, dump.observed) == ("unavailable", "the driver wrote no GPU core dump")
    assert causes[0].subject == MM


def test_a_number_that_no_gpu_has_is_taken_away_and_it_works(tmp_path):
    _, causes = replayed("device_index", tmp_path)
    assert (causes[0].subject, causes[0].status) == ("--device", Status.CONFIRMED)


def test_the_launch_printed_last_is_the_right_one_with_blocking_launches_only(tmp_path):
    session, causes = replayed("printed_launches", tmp_path)
    named, values = (item for item in session.findings if item.code == "AD-RUN-034")
    assert (named.kind, named.subject, named.facts["without_blocking"]) == ("kernel", RELU, (SIGMOID,))
    assert (named.facts["failed"], named.facts["runs"]) == ((2, 2), (2, 2))
    assert "not at fault" in named.message
    assert (values.kind, values.subject) == ("values", RELU)
    assert [text.partition(":")[0].partition(" =")[0] for text in values.facts["arguments"]] == [
        "buf1",
        "l1_bias",
        f"{RELU}_xnumel",
    ]
    printing = [one for one in session.runs if one.request.job == "printed"]
    assert {one.took_effect for one in printing} == {True}
    assert [one.request.payload.printed_kernels for one in session.runs if one.request.job == "recompile"] == [
        None,
        RELU,
    ]
    assert RELU in causes[0].title
