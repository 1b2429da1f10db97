"""Readings of what runs on simulated CUDA gave, recorded by tests/cuda_sim/record.py; no torch and no driver needed."""

from __future__ import annotations

import json
import os
from collections import defaultdict, deque
from dataclasses import replace

import pytest

from aotidoctor import triage
from aotidoctor.casebook import open_case
from aotidoctor.climb import Climb
from aotidoctor.model.case import Options
from tests.cuda_sim.recorded import load
from tests.cuda_sim.scenarios import RECORDED, RELU, SCENARIOS


class Replay(Climb):
    """A climb whose runs all happened before: one that was not recorded is not made."""

    def run(self, request):
        waiting = self.recorded[request.probe]
        if not waiting:
            return None
        outcome = waiting.popleft()
        self.runs.append(outcome)
        return outcome


def replayed(name, room):
    """The climb over the recorded runs of a scenario, and its causes."""
    it = SCENARIOS[name]
    document = json.loads((RECORDED / f"{name}.json").read_text())
    case, unread = open_case(str(it.file(room)), str(RECORDED / f"{it.inputs}.pt"), Options(), os.environ)
    assert not unread
    host = replace(load(document["host"]), tmpdir=case.host.tmpdir)
    climb = Replay(case=replace(case, host=host), runner=None)
    climb.recorded = defaultdict(deque)
    for one in map(load, document["runs"]):
        climb.recorded[one.request.probe].append(one)
    causes, interrupted = triage.examine(climb)
    assert not interrupted
    broken = [item.reason for item in climb.not_checked if "aotidoctor's own error" in item.reason]
    assert not broken
    return climb, causes


def symptoms(climb):
    """Symptom of each run's ending, by code."""
    return {item.code: item.facts["symptom"] for item in climb.findings if "symptom" in item.facts}


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
    "weights_not_loaded": "weights-not-loaded",
}


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
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_the_symptom_of_the_plain_run(name, tmp_path):
    climb, _ = replayed(name, tmp_path)
    assert symptoms(climb)["AD-RUN-001"] == SYMPTOMS[name]


@pytest.mark.parametrize(("name", "kind"), [("illegal_access", "raised"), ("illegal_access_aborts", "signalled")])
def test_blocking_launches_raise_or_abort(name, kind, tmp_path):
    climb, _ = replayed(name, tmp_path)
    blocking = next(item for item in climb.findings if item.code == "AD-RUN-012")
    assert (blocking.kind, blocking.facts["symptom"]) == (kind, "cuda-illegal-access")


@pytest.mark.parametrize("name", ["illegal_access", "illegal_access_in_cublas", "illegal_access_printed"])
def test_the_failing_kernel_is_the_first_whose_synchronisation_fails_not_the_last_one_launched(name, tmp_path):
    climb, causes = replayed(name, tmp_path)
    launch = next(item for item in climb.findings if item.code == "AD-RUN-026")
    assert launch.subject == RELU
    assert RELU in (causes[0].title + str(causes[0].subject))


def test_the_index_of_an_assert_is_followed_to_the_input(tmp_path):
    _, causes = replayed("device_assert", tmp_path)
    assert causes[0].subject == "args[0]"
