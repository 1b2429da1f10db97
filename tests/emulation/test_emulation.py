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

HERE = Path(__file__).parent
REASON = "Triton is not installed: pip install 'aotidoctor[emulate]'"
pytestmark = [
    pytest.mark.torch,
    pytest.mark.emulate,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=REASON),
]
# Of 1 + the value, and of half precision.
CLOSE, HALF_CLOSE = 1e-4, 1e-2
HALF = ("half", "bfloat16")
HOSTILE = ("endless", "loop", "import", "syntax", "grid", "size", "negative", "zero")
# Each run of the suite carries out one case in so many; 1 is all of them.
EVERY = int(os.environ.get("AOTIDOCTOR_EMULATION_EVERY", "5"))


def carried_out(kind, room, *wanted):
    root = str(HERE.parent.parent)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, str(HERE / "driver.py"), kind, str(room), str(EVERY), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    return tmp_path_factory.mktemp("emulated")


def told(case):
    return [(item["kind"], item.get("kernel"), item.get("line"), item.get("text")) for item in case["findings"]]


def test_healthy_calls_have_no_finding_and_the_outputs_of_eager(room):
    cases = carried_out("healthy", room)
    assert len(cases) >= 90 // EVERY
    for case in cases:
        limit = HALF_CLOSE if case["id"].startswith(HALF) else CLOSE
        assert told(case) == [], case["id"]
        assert case["not_emulated"] == [], case["id"]
        assert all(far is not None and far < limit for far in case["far"]), (case["id"], case["far"])


def test_faults_by_input_name_the_argument_and_the_element(room):
    cases = carried_out("inputs", room)
    assert len(cases) >= 70 // EVERY
    for case in cases:
        first, facts = case["findings"][0], case["facts"]
        assert first["kind"] in case["kinds"], (case["id"], told(case))
        if "element" in facts:
            # One lane after the other reads the index: `lanes` of them each element.
            block = case["launches"][first["launch"] - 1]["blocks"].get("x", 1)
            at = (first["program"][0] * block + first["lane"]) // facts["lanes"]
            assert at == facts["flat"], (case["id"], first)
            assert first["count"] == facts["lanes"], case["id"]
        else:
            assert first["argument"].startswith("in_ptr"), case["id"]
            assert first["buffer_input"] == facts["input"], (case["id"], first)
            assert first["extent_bytes"] == facts["bytes"], case["id"]
            assert not 0 <= first["offset"] < first["extent"], case["id"]


def test_faults_in_kernels_name_kernel_and_line(room):
    cases = carried_out("kernels", room)
    assert len(cases) >= 200 // EVERY
    for case in cases:
        first = case["findings"][0]
        assert first["kind"] in case["kinds"], (case["id"], told(case))
        assert (first["kernel"], first["wrapper_line"]) == (case["kernel"], case["line"]), (case["id"], told(case))


def test_what_cannot_be_carried_out_is_said(room):
    cases = carried_out("hostile", room, *(f"hostile-{word}" for word in HOSTILE))
    assert [case["id"] for case in cases] == [f"hostile-{word}" for word in HOSTILE]
    for case in cases:
        assert told(case) == [], case["id"]
        assert case["not_emulated"], case["id"]
