"""``aotidoctor triton`` on a package that torch has compiled."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from tests.unit.triton.harness import MLP

pytestmark = pytest.mark.torch


@pytest.fixture
def ask(packages, tmp_path):
    """Serve the model ``mlp`` with a config; exit status and report."""

    def serve(config, release):
        place = tmp_path / "mlp"
        (place / "1").mkdir(parents=True)
        shutil.copy(packages.package("mlp"), place / "1" / "model.pt2")
        (place / "config.pbtxt").write_text(config)
        command = [sys.executable, "-X", "importtime", "-m", "aotidoctor", "triton", str(place), "--triton", release]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
        assert not any(line.endswith((" torch", " numpy", " grpc")) for line in done.stderr.splitlines())
        return done.returncode, json.loads(done.stdout)

    return serve


def test_a_healthy_model(ask):
    status, report = ask(MLP, "26.06")
    assert (status, report["verdict"]) == (0, "healthy")
    assert [item["code"] for item in report["findings"] if item["severity"] != "info"] == []


def test_merged_requests(ask):
    status, report = ask(MLP + "dynamic_batching { }\n", "26.05")
    assert (status, report["verdict"]) == (1, "problem")
    (finding,) = [item for item in report["findings"] if item["severity"] == "error"]
    assert (finding["code"], finding["source"]["line"]) == ("TRITON-R34", 9)
    assert "rows of different requests" in finding["message"]
