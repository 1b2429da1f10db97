"""A made-up project with packages of its own, tested by pytest as its developers would, with the plugin installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import html5lib
import pytest

import aotidoctor

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CUDA = ROOT / "tests" / "data" / "cuda"
GOOD, BAD = "torch-2.14-cuda-13.0", "torch-2.13-cpu"

MARKED = f"""
import pytest
from pathlib import Path

@pytest.mark.aoti("models/*.pt2", host={GOOD!r})
def test_healthy():
    pass

@pytest.mark.aoti("models/mlp.pt2", host={BAD!r})
def test_sick():
    pass

@pytest.mark.aoti("models/m*.pt2")
def test_by_hand(aoti_package, aotidoctor, tmp_path):
    assert isinstance(aoti_package, Path) and aoti_package.name == "mlp.pt2"
    assert aotidoctor.contract(aoti_package).n_inputs == 1
    assert aotidoctor.assert_aoti_healthy(aoti_package, host={GOOD!r}).verdict == "healthy"

def test_plain():
    assert True
"""
ASSERTED = f"""
import aotidoctor, pytest

def test_caught():
    with pytest.raises(AssertionError, match="device-unavailable") as raised:
        aotidoctor.assert_aoti_healthy("models/mlp.pt2", host={BAD!r})
    assert raised.value.report.cause == "device-unavailable"

def test_no_such_file(aotidoctor):
    aotidoctor.assert_aoti_healthy("models/none.pt2")

def test_wrong_use(aotidoctor):
    with pytest.raises(aotidoctor_errors.ArgumentError):
        aotidoctor.assert_aoti_healthy(3)
    with pytest.raises(aotidoctor_errors.UsageError):
        aotidoctor.assert_aoti_healthy("models/mlp.pt2", "x.pt", host="debian-12", run=True)

aotidoctor_errors = aotidoctor
"""

# Plugins that are installed with us, and take longer to import than all the rest.
WITHOUT = "-p no:cacheprovider -p no:anyio -p no:hypothesispytest -p no:benchmark"


@pytest.fixture
def project(tmp_path):
    """``project(files, words...)``: the exit status, the output and the outcome of each test by its id."""
    (tmp_path / "models").mkdir()
    for name in ("mlp", "two_kernels"):
        shutil.copy(CUDA / f"{name}.pt2", tmp_path / "models")
    site = tmp_path / "site" / "aotidoctor_installed-1.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: aotidoctor-installed\nVersion: 1\n")
    (site / "entry_points.txt").write_text("[pytest11]\naotidoctor = aotidoctor.pytest_plugin\n")
    path = os.pathsep.join((str(site.parent), str(ROOT)))
    environ = {**os.environ, "PYTHONPATH": path}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "FORCE_COLOR"):
        environ.pop(name, None)

    def run(files, *words):
        (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers {WITHOUT}\n")
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-rA", "-q", *words],
            capture_output=True, text=True, cwd=tmp_path, env=environ, check=False, timeout=300,
        )  # fmt: skip
        found = {
            name: outcome for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", done.stdout, flags=re.M)
        }
        return done.returncode, done.stdout + done.stderr, found

    run.folder = tmp_path
    return run


@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_marker_makes_a_test_of_each_package(project, words):
    status, said, found = project(
        {"test_models.py": MARKED}, "--aoti-report", "html:out", "--aoti-report", "json:out", *words
    )
    assert status == 1, said
    assert found == {
        "test_models.py::test_healthy[models/mlp.pt2]": "PASSED",
        "test_models.py::test_healthy[models/two_kernels.pt2]": "PASSED",
        "test_models.py::test_sick[models/mlp.pt2]": "ERROR",
        "test_models.py::test_by_hand[models/mlp.pt2]": "PASSED",
        "test_models.py::test_plain": "PASSED",
    }
    # The report is the message.
    assert "PROBLEM  device-unavailable" in said
    assert "What to do" in said
    out = project.folder / "out"
    rows = [json.loads(line) for line in (out / "index.jsonl").read_text().splitlines()]
    assert sorted((row["test"].partition("::")[2], row["verdict"], row["cause"]) for row in rows) == [
        ("test_by_hand[models/mlp.pt2]", "healthy", ""),
        ("test_healthy[models/mlp.pt2]", "healthy", ""),
        ("test_healthy[models/two_kernels.pt2]", "healthy", ""),
        ("test_sick[models/mlp.pt2]", "problem", "device-unavailable"),
    ]
    for row in rows:
        assert json.loads((out / f"{row['file']}.json").read_text())["verdict"] == row["verdict"]
        html5lib.HTMLParser(strict=True).parse((out / f"{row['file']}.html").read_text())
    html5lib.HTMLParser(strict=True).parse((out / "index.html").read_text())
    assert len(list(out.iterdir())) == 2 * len(rows) + 2


def test_asserting(project):
    status, said, found = project({"test_asserted.py": ASSERTED})
    assert status == 1, said
    assert found == {
        "test_asserted.py::test_caught": "PASSED",
        "test_asserted.py::test_no_such_file": "FAILED",
        "test_asserted.py::test_wrong_use": "PASSED",
    }
    assert "no such file: models/none.pt2" in said
    assert "testing/healthy.py" not in said


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("@pytest.mark.aoti('none/*.pt2')\ndef test_x(): pass", (), "no file below"),
        ("@pytest.mark.aoti\ndef test_x(): pass", (), "expected aoti("),
        ("def test_x(aoti_package): pass", (), "aoti_package needs @pytest.mark.aoti"),
        ("def test_x(): pass", ("--aoti-report", "pdf:out"), "observed 'pdf:out', expected one of html:DIR"),
    ],
)
def test_what_cannot_be_meant_is_said(project, text, words, expected):
    status, said, found = project({"test_x.py": f"import pytest\n{text}\n"}, *words)
    assert status != 0
    assert "PASSED" not in found.values()
    assert expected in said


def test_a_project_that_does_not_use_it_imports_nothing_of_it(project):
    text = "import sys\ndef test_x():\n    assert not [n for n in sys.modules if n.startswith('aotidoctor.') and n not in KNOWN]\n"
    known = "KNOWN = ('aotidoctor.version', 'aotidoctor.pytest_plugin')\n"
    status, said, _ = project({"test_x.py": known + text})
    assert status == 0, said


def test_the_entry_point_is_declared():
    tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"aotidoctor": "aotidoctor.pytest_plugin"}


def test_a_failure_can_be_sent():
    import pickle

    with pytest.raises(aotidoctor.AotiUnhealthyError) as raised:
        aotidoctor.assert_aoti_healthy("/no/such.pt2")
    sent = pickle.loads(pickle.dumps(raised.value))
    assert str(sent) == str(raised.value)
    assert sent.report.cause == "artifact-missing"
