"""Who waits for a process is not held up by somebody whom it leaves behind, or by one that does not listen."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

import pytest

from aotidoctor.runner import own_command
from aotidoctor.runner.own_command import PluginError, PluginHost

# Ends at once; what it started holds its stdout and stderr for longer than any test may take.
LEAVES_SOMEBODY = """
import subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
print(left.pid, flush=True)
"""
CLOSES_ITS_STDOUT = "import os, time; os.close(1); time.sleep(3600)"
READS_NOTHING = "import time; time.sleep(3600)"


def is_code(monkeypatch, module, code):
    monkeypatch.setattr(module, "own_command", lambda *_: [sys.executable, "-c", code])


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(int(pid), signal.SIGKILL)


def test_a_command_that_leaves_somebody_behind(monkeypatch, tmp_path):
    is_code(monkeypatch, own_command, LEAVES_SOMEBODY)
    done = own_command.RunningCommand([], cwd=str(tmp_path), seconds=600, most=1 << 20).run()
    kill(done.stdout)
    assert (done.status, done.late) == (0, False)


def test_each_command_that_leaves_somebody_behind(monkeypatch):
    is_code(monkeypatch, own_command, LEAVES_SOMEBODY)
    done = own_command.run_each([], "x")
    kill(done.output)
    assert done.status == 0


def test_what_each_command_says_on_stderr_is_shown_where_it_says_nothing_else(monkeypatch):
    is_code(monkeypatch, own_command, "import sys; sys.exit('why')")
    assert own_command.run_each([], "x") == own_command.ExaminedPath(path="x", status=1, output="why")


def test_a_command_that_closes_its_stdout_has_no_more_time(monkeypatch, tmp_path):
    is_code(monkeypatch, own_command, CLOSES_ITS_STDOUT)
    done = own_command.RunningCommand([], cwd=str(tmp_path), seconds=0.1, most=1 << 20).run()
    assert (done.status, done.late) == (-signal.SIGTERM, True)


def test_a_plugin_that_reads_no_question(monkeypatch):
    is_code(monkeypatch, own_command, READS_NOTHING)
    with PluginHost() as host, pytest.raises(PluginError, match=r"no answer within 0\.1 s"):
        # More than a pipe holds.
        host.ask({"text": "x" * (4 << 20)}, 0.1)
