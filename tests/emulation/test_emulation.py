"""Packages compiled for CUDA, carried out on the CPU: healthy calls, faults by input, faults in the text of kernels.

Needs Triton (the extra ``emulate``); a child carries out all cases of a kind, so that it is imported once.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulation.table import carried_out, is_as_eager

HERE = Path(__file__).parent
REASON = "Triton is not installed: pip install 'aotidoctor[emulate]'"
pytestmark = [
    pytest.mark.torch,
    pytest.mark.emulate,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=REASON),
]
HOSTILE = ("endless", "loop", "import", "module", "syntax", "grid", "size", "negative", "zero")
# Each run of the suite carries out one case in so many; AOTIDOCTOR_EMULATION_EVERY=1 is all of them.
EVERY = dict.fromkeys(("healthy", "inputs", "kernels"), int(os.environ.get("AOTIDOCTOR_EMULATION_EVERY", "0")))
EVERY = {kind: given or usual for (kind, given), usual in zip(EVERY.items(), (6, 6, 25), strict=True)}


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    return tmp_path_factory.mktemp("emulated")


def told(case):
    return [(item["kind"], item.get("kernel"), item.get("line"), item.get("text")) for item in case["findings"]]


def left_out(case):
    """What was not carried out, but for collisions in kernels whose programs may wait for one another."""
    return {one["what"] for one in case["not_emulated"] if not one["what"].startswith("programs of")}


def test_healthy_calls_have_no_finding_and_the_outputs_of_eager(room):
    cases = carried_out("healthy", EVERY["healthy"], room)
    assert len(cases) >= 90 // EVERY["healthy"]
    for case in cases:
        assert told(case) == [], case["id"]
        assert left_out(case) == set(), case["id"]
        assert is_as_eager(case), (case["id"], case["far"])


def test_the_quick_way_finds_nothing_in_healthy_calls(room):
    cases = carried_out("healthy", EVERY["healthy"], room, quick=True)
    for case in cases:
        assert told(case) == [], case["id"]
        assert left_out(case) <= {"the values that are computed"}, case["id"]
    # Most kernels let it: what is loaded, and is no index, does not matter.
    ways = [one["way"] for case in cases for one in case["launches"] if one["state"] == "done"]
    assert ways.count("quick") > 0.8 * len(ways)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("kind", "least"), [("inputs", 90), ("kernels", 600)])
def test_faults_have_the_right_kernel_line_and_lane(room, kind, least, quick):
    cases = carried_out(kind, EVERY[kind], room, quick=quick)
    assert len(cases) >= least // EVERY[kind]
    for case in cases:
        assert (told(case) != []) == (case["kinds"] is not None), case["id"]
        wrong = [what for what, right in case["right"].items() if right is False]
        assert wrong == [], (case["id"], case["findings"][0])


def test_what_cannot_be_carried_out_is_said(room):
    cases = carried_out("hostile", 1, room, *(f"hostile-{word}" for word in HOSTILE))
    assert [case["id"] for case in cases] == [f"hostile-{word}" for word in HOSTILE]
    for case in cases:
        assert told(case) == [], case["id"]
        assert case["not_emulated"], case["id"]


def test_the_way_follows_from_size_and_time_and_from_what_was_named(room):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, str(HERE / "ways.py"), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=200, check=True)
    values = ["the values that are computed"]
    computed, left_out = [["full", "full"], [], [], 1], [["quick", "quick"], [], values, 0]
    assert json.loads(done.stdout) == {
        "small": computed,
        "large, time enough": computed,
        # What its indices follow from is computed as well, and left out of the launches' own account.
        "large, one kernel named": [["quick", "full"], [], [], 1],
        # Two passes, and none before them.
        "large, weights kept": [[0, 0], True],
        "large, no time": left_out,
        "large, at fault": [["quick", "quick"], ["device-assert", "out-of-bounds"], values, 0],
        "small, no time": left_out,
    }


def test_a_kernel_with_other_numbers_is_the_first_that_diverges(room):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")))}
    models = ["mlp", "layernorm"]
    command = [sys.executable, str(HERE / "diverging.py"), str(room), *models]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=300, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(models) + 3
    for model, edited, named, _ in told:
        assert named == (edited or None), model
