"""A child under a tool, and the GPU's core dump: with made-up tools, since what matters here is who starts and reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aotidoctor.model.jobs import Script
from aotidoctor.model.run import Exited, NotStarted, Request
from aotidoctor.runner.runner import Runner

TOOL = """#!/bin/sh
log="$1"; shift
echo "========= COMPUTE-SANITIZER" > "$log"
echo "$@" >> "$log"
exec "$@"
"""
DEBUGGER = """#!/bin/sh
echo "CUDA Exception: Warp Illegal Address"
for word in "$@"; do case "$word" in "target cudacore"*) cat "${word#target cudacore }";; esac; done
"""
WRITES = """
import os, pathlib
RESULT = {"told": os.environ.get("CUDA_COREDUMP_FILE")}
if os.environ.get("CUDA_COREDUMP_FILE") and {faults}:
    pathlib.Path(os.environ["CUDA_COREDUMP_FILE"]).write_text("the dump")
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    for name, text in (("tool", TOOL), ("cuda-gdb", DEBUGGER)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def ran(tmp_path: Path, path: str | None = None, *, faults: bool = False, **changes: object):
    script = tmp_path / "script.py"
    script.write_text(WRITES.replace("{faults}", str(faults)))
    payload = Script(path=str(script))
    base = tmp_path / "tmpdir"
    base.mkdir(exist_ok=True)
    environ = {**os.environ, "TMPDIR": str(base), **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})}
    with Runner(environ=environ) as runner:
        done = runner.run(Request(probe="tool", job="script", payload=payload, timeout=20.0, **changes))
    assert list(base.iterdir()) == [], "something was left in TMPDIR"
    return done


def test_a_child_is_started_under_the_tool_and_what_that_writes_is_kept(tmp_path, tools):
    done = ran(tmp_path, wrapper=(str(tools / "tool"), "{run_dir}/tool.log"))
    assert done.ending == Exited(code=0, done=True)
    assert done.tool_output.startswith("========= COMPUTE-SANITIZER\n")
    assert "--once" in done.tool_output
    assert not done.forked
    assert done.argv[0] == str(tools / "tool")


def test_a_tool_that_is_not_there_is_told(tmp_path):
    done = ran(tmp_path, wrapper=("/nonexistent/compute-sanitizer",))
    assert isinstance(done.ending, NotStarted)
    assert "/nonexistent/compute-sanitizer" in done.ending.reason


CORE = {"env": {"CUDA_COREDUMP_FILE": "{run_dir}/gpu.core"}, "gpu_core": True, "fresh": True}


def test_the_dump_lies_in_the_directory_of_the_run_and_is_read(tmp_path, tools):
    done = ran(tmp_path, str(tools), faults=True, **CORE)
    assert str(done.result["told"]).endswith("/gpu.core")
    assert "{run_dir}" not in str(done.result["told"])
    assert done.debugger_problem is None
    assert done.debugger_output == "=== gpu-core\nCUDA Exception: Warp Illegal Address\nthe dump\n"
    assert not Path(str(done.result["told"])).exists()


def test_no_dump_is_told(tmp_path, tools):
    done = ran(tmp_path, str(tools), **CORE)
    assert (done.debugger_output, done.debugger_problem) == ("", "the driver wrote no GPU core dump")


def test_a_missing_debugger_is_told_with_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("aotidoctor.runner.gdb.CUDA_TOOLKIT", str(tmp_path))
    done = ran(tmp_path, faults=True, **CORE)
    assert "conda install" in str(done.debugger_problem)
