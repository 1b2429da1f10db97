"""Files that this user may not read, and a process that lacks memory: said as such, and taken for nothing else."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

DYN = Path(__file__).parents[2] / "data" / "releases" / "2.8.0" / "dyn"
# Root reads everything by two capabilities, which a program that it starts does not get back.
WITHOUT = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
libc = ctypes.CDLL(None)
if os.geteuid() == 0 and any(libc.prctl(PR_CAPBSET_DROP, one, 0, 0, 0) for one in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH)):
    sys.exit(77)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def call(*words, **more):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "-m", "aotidoctor", *map(str, words)],
        capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL, **more,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("the kernel does not let root give up its capabilities")
    return done


@pytest.fixture
def closed(tmp_path):
    """A file without permissions, a folder without, and a file in it."""
    (tmp_path / "file.pt2").write_bytes((DYN / "model.pt2").read_bytes())
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.pt2").write_bytes((DYN / "model.pt2").read_bytes())
    (tmp_path / "file.pt2").chmod(0)
    (tmp_path / "folder").chmod(0)
    yield tmp_path
    (tmp_path / "folder").chmod(0o700)


@pytest.mark.parametrize(
    "words",
    [
        ("check", "FILE"), ("inspect", "FILE"), ("compat", "FILE"), ("repro", "FILE"), ("run", "FILE", "--generate"),
        ("verify", "FILE"), ("check", DYN / "model.pt2", "--inputs", "FILE"), ("classify", "FILE"),
        ("check", DYN / "model.pt2", "--reference", "FILE"), ("analyze", "FILE"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["file.pt2", "folder/file.pt2", "folder/absent.pt2", "folder"])
def test_what_may_not_be_read_is_not_damaged_and_not_missing(closed, words, place):
    path = closed / place
    done = call(*(path if word == "FILE" else word for word in words), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 4
    assert found["diagnoses"] == []
    assert str(path.name) in found["cannot_examine"]
    if place != "folder":
        assert "may not" in found["cannot_examine"] or "Permission denied" in found["cannot_examine"]


def test_a_part_of_a_folder_that_may_not_be_read_is_said(closed):
    (closed / "model").mkdir()
    (closed / "model" / "data").mkdir(mode=0)
    done = call("check", closed / "model", "--json")
    assert done.returncode == 4
    assert "Permission denied" in json.loads(done.stdout)["cannot_examine"]


def test_a_batch_lists_them_as_not_read(closed):
    done = call("batch", closed / "file.pt2", "-o", closed / "out", "--no-cache", "--json")
    assert json.loads(done.stdout)["verdicts"] == {"unreadable": 1}
    assert done.returncode == 4


@pytest.mark.parametrize("megabytes", [150, 250, 400])
def test_a_process_that_lacks_memory_knows_of_no_missing_library(megabytes):
    limit = (megabytes << 20,) * 2
    done = call("check", DYN / "model.pt2", "--json", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    assert "missing-library" not in done.stdout
    if done.returncode == 0:
        found = json.loads(done.stdout)
        libraries = [one for one in found["not_checked"] if one["name"] == "missing_library"]
        assert libraries == [] or "read" in libraries[0]["reason"]
