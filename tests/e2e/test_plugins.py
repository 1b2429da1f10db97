"""The example plugin where something runs: its probe is asked, its setup is imported in every child, or left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import aotidoctor

pytestmark = [pytest.mark.torch]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    target = tmp_path_factory.mktemp("acme")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(ROOT / "examples" / "plugin")], check=True)
    return target


def test_probe_and_setup(acme, packages, monkeypatch, tmp_path):
    info = tmp_path / "odd-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Version: 1\n")
    (info / "entry_points.txt").write_text("[aotidoctor.setup]\nodd = odd_setup\n")
    (tmp_path / "odd_setup.py").write_text("import ctypes\nctypes.string_at(0)\n")
    monkeypatch.syspath_prepend(str(acme))
    monkeypatch.syspath_prepend(str(tmp_path))
    path = os.pathsep.join((str(acme), str(tmp_path), str(ROOT)))
    report = aotidoctor.diagnose(
        packages.package("linear"), packages.sample_path("linear"), environ={**os.environ, "PYTHONPATH": path}
    )
    assert report.verdict == "healthy"
    finding = next(item for item in report.findings if item.code == "ACME-RUN-001")
    run = next(run for run in report.runs if run.id == finding.source.run)
    assert (finding.observed, run.request.env) == ("it ran", {"ACME_STRICT": "1"})
    assert all(run.request.payload.code.imports == ("acme_aoti.operators",) for run in report.runs)
    (left_out,) = [item for item in report.not_checked if item.code == "AD-PLUGIN"]
    assert left_out.name == "setup odd_setup"
    assert "Signalled" in left_out.reason
    assert "probes acme" in report.extra["plugins"]
