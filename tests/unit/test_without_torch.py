"""A bare install: without torch, numpy, protobuf and SQLite, what executes nothing answers, and run says what it cannot."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from aotidoctor.reports.json.schema import schema
from tests.artifacts.packages import package_parts, write_zip
from tests.unit.program.programs import write as write_program
from tests.unit.triton.harness import MLP, ServingCase, lay_out

ROOT = Path(__file__).parents[2]
# As in an environment where they were never installed, also for the children: Python reads this file at its start.
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy", "safetensors", "google", "tritonclient", "_sqlite3"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


@pytest.fixture
def ask(tmp_path):
    """Run the command line there; exit status and report. Nothing but progress may be on stderr."""
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "sitecustomize.py").write_text(BLOCKER)
    (tmp_path / "tmp").mkdir()
    path = os.pathsep.join((str(tmp_path / "blocked"), str(ROOT)))
    environ = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path / "tmp")}

    def run(*words):
        command = [sys.executable, "-m", "aotidoctor", *words, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, check=False)
        assert "Traceback" not in done.stderr
        assert "Warning" not in done.stderr
        assert list((tmp_path / "tmp").iterdir()) == []
        run.stderr = done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


@pytest.fixture
def package(tmp_path):
    return write_zip(tmp_path / "model.pt2", package_parts())


def test_the_blocker_blocks(ask, tmp_path):
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "blocked")}
    done = subprocess.run([sys.executable, "-c", "import numpy"], capture_output=True, env=environ, check=False)
    assert b"ModuleNotFoundError" in done.stderr


def test_inspect(ask, package):
    status, report = ask("inspect", package)
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert (status, report["artifact"]["kind"]) == (0, "aoti-package")
    assert report["artifact"]["models"][0]["name"] == "model"


def test_check_names_a_broken_package(ask, package):
    cut = Path(package).with_name("cut.pt2")
    cut.write_bytes(Path(package).read_bytes()[:-200])
    status, report = ask("check", str(cut))
    assert (status, report["diagnoses"][0]["cause"]) == (1, "artifact-corrupt")


def test_check_reads_tensors(ask, package):
    header = json.dumps({"x": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    inputs = Path(package).with_name("inputs.safetensors")
    inputs.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    _, report = ask("check", package, "--inputs", str(inputs))
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert [leaf["dtype"] for leaf in report["inputs"]["leaves"]] == ["int32"]


def test_a_store_of_cases_that_was_named_is_in_the_exit_status(ask, tmp_path):
    (tmp_path / "x.log").write_text("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    status, report = ask("classify", str(tmp_path / "x.log"), "--cases", str(tmp_path / "cases.db"))
    assert (status, report["diagnoses"][0]["cause"]) == (4, "out-of-memory")
    assert "built without SQLite" in ask.stderr
    assert not (tmp_path / "cases.db").exists()


def test_a_batch_goes_without_its_cache(ask, package, tmp_path):
    status, summary = ask("batch", package, "-o", str(tmp_path / "out"), "--cache", str(tmp_path / "cache.db"))
    assert (status, summary["judged"]) == (4, 1)
    assert "built without SQLite" in summary["problem"]


def test_run_says_what_it_could_not_do(ask, package):
    status, report = ask("run", package)
    assert (status, report["verdict"], report["diagnoses"]) == (4, "unknown", [])
    assert "torch" in report["cannot_examine"]


def test_triton_without_its_schema(ask, tmp_path):
    """What the own reader refuses, it refuses alone; of what it takes, it says what was not asked."""
    lay_out(ServingCase(name="bad", config=MLP + "// a remark\n"), tmp_path / "bad")
    status, report = ask("triton", str(tmp_path / "bad"))
    assert (status, report["findings"][0]["code"]) == (1, "TRITON-R1")
    lay_out(ServingCase(name="good"), tmp_path / "good")
    status, report = ask("triton", str(tmp_path / "good"))
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert status == 0
    (missing,) = [item for item in report["not_checked"] if item["code"] == "TRITON-R1"]
    assert "pip install 'aotidoctor[triton]'" in missing["reason"]


def test_verify_by_the_archive_alone(ask, package, tmp_path):
    def renamed(record):
        specs = record["program"]["graph_module"]["signature"]["input_specs"]
        specs[0]["parameter"]["parameter_name"] = "norm.wait"

    status, report = ask("verify", write_program(tmp_path / "good.pt2", "mlp"), "--against", package)
    jsonschema.Draft202012Validator(schema()).validate(report)
    # The package has no source to be compared by, and that was asked for.
    assert (status, [item["code"] for item in report["findings"]]) == (4, ["VERIFY-A06"])
    assert report["cannot_examine"].startswith("not compared with the package: ")
    said = {item["code"]: item["reason"] for item in report["not_checked"]}
    assert "pip install 'aotidoctor[torch]'" in said["VERIFY"]
    assert "C shims" in said["VERIFY-A02"]
    status, report = ask("verify", write_program(tmp_path / "bad.pt2", "batchnorm", renamed))
    assert status == 1
    assert ("VERIFY-S03", "absent") in [(item["code"], item["kind"]) for item in report["findings"]]


@pytest.mark.parametrize("words", [("env",), ("explain", "input-dtype")])
def test_what_needs_no_package(ask, words):
    assert ask(*words)[0] == 0
