"""Runs are confined: a library in a package, loaded by PyTorch, that writes to a file of the user's while it is loaded."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.model.case import Options
from aotidoctor.model.jobs import Run
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import base_payload
from aotidoctor.runner.runner import Runner
from aotidoctor.triage.open_case import open_case
from tests.unit.worker.test_sandbox import needs_landlock

pytestmark = pytest.mark.torch
SOURCE = """
#include <stdio.h>
__attribute__((constructor)) static void on_load(void) {
  FILE *file = fopen("MARK", "w");
  if (file) fclose(file);
}
"""


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is not below /tmp, which a run may write to."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def load(runner: Runner, library: Path, *, confine: bool) -> Outcome:
    payload = Run(package=str(library), kind="bare-so", confine=confine)
    return runner.run(Request(probe="x", job="run", payload=payload, timeout=100))


@needs_landlock
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_what_a_library_writes_when_it_is_loaded_does_not_reach_the_users_files(tmp_path, outside, runner):
    source, library, mark = tmp_path / "lib.c", tmp_path / "lib.so", outside / "mark"
    source.write_text(SOURCE.replace("MARK", str(mark)))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    outcome = load(runner, library, confine=True)
    assert outcome.result["confined"] == ["files", "network"]
    assert not mark.exists()
    # It is not the library's own fault that it does not.
    assert "confined" not in load(runner, library, confine=False).result
    assert mark.exists()


@pytest.mark.parametrize(
    ("options", "confined"),
    [
        ({}, True),
        ({"setup": "setup.py"}, False),
        ({"imports": ("plugin",)}, False),
        ({"reference": "model.py:build"}, False),
        ({"reference": "model.pt2"}, True),
        ({"device": "cuda"}, False),
    ],
)
def test_code_of_the_users_own_and_gpus_are_not_confined(packages, options, confined):
    case, _ = open_case(str(packages.package("linear")), None, Options(), dict(os.environ))
    assert base_payload(replace(case, options=Options(**options))).confine is confined


@pytest.mark.parametrize("words", [(), ("--setup", "setup.py"), ("--reference", "build.py:build")])
def test_the_report_says_which_runs_are_not_confined(packages, command_line, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    Path("setup.py").write_text("")
    Path("build.py").write_text("def build(x):\n    return x\n")
    model = str(packages.package("linear")), "--inputs", str(packages.sample_path("linear")), *words
    done = command_line("run", *model, "--report", "md:x.md", "--report", "html:x.html", "--json")
    document = json.loads(done.stdout)
    free = document["extra"].get("not_confined", "")
    # The stages of a model of the user's are runs of it, too.
    assert re.findall(r"R\d+", free) == ([run["id"] for run in document["runs"]] if words else [])
    assert ("(code of your own is executed)" in free) == bool(words)
    for text in (Path("x.md").read_text(), Path("x.html").read_text(), command_line("run", *model).stdout):
        # Without markup: in HTML each run is a link.
        assert (re.search(r"Confined:? *all but *R", re.sub(r"<[^>]{1,200}>", " ", text)) is not None) == bool(words)
