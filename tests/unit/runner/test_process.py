"""The end of a process: waited for with and without pidfd, and named by its status."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from aotidoctor.model.run import (
    NO_CHANNEL,
    RUN_VARIABLE,
    ChildError,
    Exited,
    NotStarted,
    OutOfMemory,
    Signalled,
    TimedOut,
)
from aotidoctor.runner import child_ending as processes
from aotidoctor.runner.child_ending import ChannelReadout, ProcessEnd, ProcessWatch, classify_ending, kill_all


@pytest.fixture(params=["pidfd", "no pidfd"])
def watched(request, monkeypatch):
    """A process that sleeps and its watch; as well on a kernel before 5.3, which knows no pidfd."""
    if request.param == "no pidfd":

        def refused(pid):
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refused)
    with subprocess.Popen(["sleep", "60"]) as process:
        watch = ProcessWatch(process.pid)
        yield process, watch
        watch.close()
        watch.close()
        process.kill()


def test_the_end_is_seen_and_the_process_not_reaped(watched):
    process, watch = watched
    assert not watch.wait(0.05)
    assert not watch.wait(-1)
    os.kill(process.pid, signal.SIGTERM)
    assert watch.wait(10)
    assert watch.wait(0)
    assert os.waitpid(process.pid, 0)[1] == signal.SIGTERM
    process.returncode = -signal.SIGTERM


def test_what_left_the_group_is_found_by_its_mark():
    environ = {**os.environ, RUN_VARIABLE: "left-the-group"}
    with (
        subprocess.Popen(["sleep", "60"], env=environ, start_new_session=True) as leader,
        subprocess.Popen(["sleep", "60"], env=environ, start_new_session=True) as stray,
    ):
        assert kill_all(leader.pid, environ[RUN_VARIABLE]) == 1
        assert (leader.wait(10), stray.wait(10)) == (-signal.SIGKILL, -signal.SIGKILL)


def test_what_is_in_the_middle_of_execve_is_looked_at_again(monkeypatch):
    seen, read = [], processes.read_proc

    def read_later(path):
        seen.append(path)
        return b"" if seen.count(path) == 1 else read(path)

    monkeypatch.setattr(processes, "read_proc", read_later)
    env = {**os.environ, RUN_VARIABLE: "in-execve"}
    with subprocess.Popen(["sleep", "60"], env=env, start_new_session=True) as stray:
        assert processes.find_marked("in-execve", after=stray.pid - 1) == [stray.pid]
        assert seen.count(f"/proc/{stray.pid}/environ") == 2
        stray.kill()


def test_one_without_an_environment_is_looked_at_a_few_times_only():
    with subprocess.Popen(["sleep", "60"], env={}, start_new_session=True) as stray:
        assert processes.find_marked("no-such-token", after=stray.pid - 1) == []
        stray.kill()


IMPORT = ChildError(type="ImportError", message="no libtorch")


@pytest.mark.parametrize(
    ("end", "readout", "expected"),
    [
        (ProcessEnd(status=0), ChannelReadout(done=True), Exited(code=0, done=True)),
        (ProcessEnd(status=3 << 8), ChannelReadout(), Exited(code=3, done=False)),
        (ProcessEnd(status=NO_CHANNEL << 8), ChannelReadout(done=True), Exited(code=NO_CHANNEL, done=True)),
        (ProcessEnd(status=9, limit=5.0), ChannelReadout(), TimedOut(limit=5.0)),
        (ProcessEnd(status=None, limit=5.0), ChannelReadout(), TimedOut(limit=5.0)),
        (
            ProcessEnd(status=9, oom="the cgroup counted a kill"),
            ChannelReadout(),
            OutOfMemory(reason="the cgroup counted a kill"),
        ),
        (
            ProcessEnd(status=15, oom="the cgroup counted a kill"),
            ChannelReadout(),
            Signalled(signal=15, name="SIGTERM"),
        ),
        (ProcessEnd(status=11 | 0x80), ChannelReadout(), Signalled(signal=11, name="SIGSEGV", core_dumped=True)),
        (ProcessEnd(status=40), ChannelReadout(), Signalled(signal=40, name="SIG40")),
    ],
)
def test_an_ending(end, readout, expected):
    assert classify_ending(end, readout) == expected


@pytest.mark.parametrize(
    ("end", "readout", "reason"),
    [
        (ProcessEnd(status=None), ChannelReadout(), "the exit status was lost"),
        (ProcessEnd(status=NO_CHANNEL << 8), ChannelReadout(), "the worker could not report"),
        (ProcessEnd(status=1 << 8), ChannelReadout(fatal=IMPORT), "ImportError: no libtorch"),
    ],
)
def test_what_never_ran(end, readout, reason):
    found = classify_ending(end, readout)
    assert isinstance(found, NotStarted)
    assert reason in found.reason
