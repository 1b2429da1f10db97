"""What a confined process can do no longer, tried in a child, and what it still can."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from aotidoctor.model.jobs import Run, UserCode
from aotidoctor.worker import sandbox
from aotidoctor.worker.channel import Channel

ROOT = Path(__file__).parent.parent.parent.parent
LANDLOCK = ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1)
needs_landlock = pytest.mark.skipif(LANDLOCK < 6, reason="this kernel has no Landlock that limits signals")
WRITES = {"write outside", "overwrite", "truncate", "make a folder", "remove", "link", "rename"}


def refused(how, folder):
    command = [sys.executable, str(Path(__file__).with_name("attempts.py")), how, str(folder)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return {name for name, succeeded in json.loads(done.stdout).items() if not succeeded}


def test_nothing_is_refused_without_it(tmp_path):
    assert refused("nothing", tmp_path) <= {"trace the parent"}


@needs_landlock
def test_files_are_written_in_the_folder_alone(tmp_path):
    assert refused("files", tmp_path) == WRITES | {"tcp", "signal the parent", "trace the parent"}


def test_there_is_no_network(tmp_path):
    assert refused("network", tmp_path) - {"trace the parent"} == {"tcp", "udp"}


def test_code_that_computes_can_do_nothing_else(tmp_path):
    everything = WRITES | {"write inside", "execute", "replace itself", "fork", "tcp", "udp", "signal the parent"}
    assert refused("calls", tmp_path) == everything | {"trace the parent"}


@needs_landlock
def test_a_run_writes_to_the_folders_of_runs_and_temporary_files_alone(monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)
    # Not below /tmp, which a run may write to.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        assert refused("run", Path(folder)) == WRITES | {"tcp", "udp", "signal the parent", "trace the parent"}


@needs_landlock
def test_all_of_it_together(tmp_path):
    together = refused("files+network+calls", tmp_path)
    assert together == refused("calls", tmp_path)
    assert "compute" not in together


def channel(folder):
    (folder / "channel.jsonl").touch()
    return Channel(folder / "channel.jsonl", user_cwd=folder, run_dir=folder)


def warnings(folder):
    lines = (folder / "channel.jsonl").read_text().splitlines()
    return [json.loads(line)["warning"] for line in lines if "warning" in line]


@pytest.mark.parametrize(
    "payload",
    [Run(code=UserCode(setup="setup.py")), Run(code=UserCode(imports=("a",))), Run(reference="model.py:build")],
)
def test_code_of_the_users_own_is_not_confined_and_that_is_said(tmp_path, payload, monkeypatch):
    monkeypatch.setattr(sandbox, "confine_calls", lambda: pytest.fail("it is confined"))
    sandbox.confine_replay(payload, channel(tmp_path))
    assert warnings(tmp_path) == ["not confined: it executes code of your own"]


def test_where_the_kernel_has_neither_files_are_limited_and_that_is_said(tmp_path, monkeypatch):
    limits = []
    monkeypatch.setattr(sandbox, "confine_calls", lambda: False)
    monkeypatch.setattr(sandbox, "confine_files", lambda folders: False)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, values: limits.append((kind, values[0])))
    sandbox.confine_replay(Run(), channel(tmp_path))
    assert limits == [(resource.RLIMIT_FSIZE, sandbox.MAX_RESULT_BYTES)]
    assert len(warnings(tmp_path)) == 1


def test_a_channel_that_is_kept_open_writes_to_the_same_file(tmp_path):
    made = channel(tmp_path)
    made.keep_open()
    made.put(a=1)
    made.put(b=2)
    assert (tmp_path / "channel.jsonl").read_text().split() == ['{"put":{"a":1}}', '{"put":{"b":2}}']
