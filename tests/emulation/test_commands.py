"""What a user of the command line gets: the demo, and a wrong number found by holding it against the program."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REASON = "Triton is not installed: pip install 'aotidoctor[emulate]'"
WITHOUT = importlib.util.find_spec("triton") is None
ROOT = Path(__file__).parent.parent.parent
pytestmark = [pytest.mark.torch, pytest.mark.emulate]


def run_python(*words, cache):
    paths = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    environ = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, check=False, timeout=400)


def aotidoctor(*words, cache):
    return run_python("-m", "aotidoctor", *words, cache=cache)


@pytest.mark.skipif(WITHOUT, reason=REASON)
def test_the_demo_names_the_element_and_proves_it(tmp_path):
    done = aotidoctor("demo", "--cuda", "--json", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    (patient,) = json.loads(done.stdout)["patients"]
    first = patient["report"]["diagnoses"][0]
    assert (first["cause"], first["status"], first["subject"]) == (
        "cuda-device-assert",
        "confirmed-in-emulation",
        "args[0]",
    )
    (found,) = [item for item in patient["report"]["findings"] if item["code"] == "AD-RUN-040"]
    # Element 2, 3 of rows of 7, each read by 24 lanes; 256 lanes a program.
    assert (found["facts"]["program"], found["facts"]["lane"]) == ([1, 0, 0], (2 * 7 + 3) * 24 - 256)
    blamed = next(item for item in patient["report"]["findings"] if item["code"] == "AD-RUN-022")
    assert (blamed["facts"]["element"], blamed["facts"]["value"]) == ("args[0][2, 3]", 100)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    room = tmp_path_factory.mktemp("parts")
    made = run_python(ROOT / "tests/emulation/parts.py", room, cache=room)
    assert made.returncode == 0, made.stderr
    return room


@pytest.mark.skipif(WITHOUT, reason=REASON)
@pytest.mark.parametrize(
    ("name", "status", "causes", "headline"),
    [
        ("whole", 0, [], "HEALTHY  in emulation; this host cannot run it"),
        ("part", 1, ["device-unavailable"], "PROBLEM  device-unavailable"),
        ("nothing", 1, ["device-unavailable"], "PROBLEM  device-unavailable"),
    ],
)
def test_only_what_was_carried_out_as_a_whole_is_healthy_in_emulation(parts, name, status, causes, headline):
    report = parts / f"{name}.json"
    words = [parts / f"{name}.pt2", "--inputs", parts / "inputs.pt", "--report", f"json:{report}"]
    done = aotidoctor("run", *words, cache=parts)
    assert done.returncode == status, done.stderr
    assert [item["cause"] for item in json.loads(report.read_text())["diagnoses"]][:1] == causes
    assert done.stdout.strip().startswith(headline)


@pytest.mark.skipif(not WITHOUT, reason="Triton is installed")
def test_without_triton_the_demo_says_what_to_install(tmp_path):
    done = aotidoctor("demo", "--cuda", "--json", cache=tmp_path)
    assert done.returncode == 4
    assert "aotidoctor[emulate]" in done.stdout
