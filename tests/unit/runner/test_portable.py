"""The runner without Linux's means: every way a child can end, and what it cannot do is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from aotidoctor.model.jobs import Script
from aotidoctor.model.run import RUNNER_VARIABLE, Exited, NotStarted, Request, Signalled, TimedOut
from aotidoctor.runner import portable
from aotidoctor.runner.portable import PortableRunner, make_runner
from aotidoctor.runner.runner import Runner
from tests.waiting import outlived

FAULTS = Path(__file__).parents[2] / "faults"
ROOT = Path(__file__).parents[3]
ENVIRON = {**os.environ, RUNNER_VARIABLE: "portable"}


@pytest.fixture
def place(tmp_path):
    made = tmp_path / "place"
    made.mkdir()
    return made


@pytest.fixture
def runner(place):
    with make_runner(environ={**ENVIRON, "TMPDIR": str(place)}) as made:
        assert isinstance(made, PortableRunner)
        yield made
    assert list(place.iterdir()) == []


def request(name, **changes):
    payload = Script(path=str(FAULTS / f"{name}.py"))
    return Request(**{"probe": name, "job": "script", "payload": payload, "timeout": 20.0, **changes})


def test_the_variable_and_the_system_choose(monkeypatch):
    assert type(make_runner(environ={})) is Runner
    monkeypatch.setattr(sys, "platform", "darwin")
    assert type(make_runner(environ={})) is PortableRunner


@pytest.mark.parametrize("name", ["segv", "abort", "kill_self"])
def test_a_signal_is_named_with_the_stage(runner, name):
    number = {"segv": signal.SIGSEGV, "abort": signal.SIGABRT, "kill_self": signal.SIGKILL}[name]
    outcome = runner.run(request(name))
    assert outcome.ending == Signalled(signal=int(number), name=number.name)
    assert outcome.stage == "run1"


@pytest.mark.parametrize(
    ("name", "ending"), [("exit_zero", Exited(code=0, done=False)), ("raises_plain", Exited(code=1, done=True))]
)
def test_an_exit_keeps_what_was_reported(runner, name, ending):
    outcome = runner.run(request(name))
    assert outcome.ending == ending
    assert (outcome.error is not None) == ending.done


def test_a_hang_ends_at_the_limit_and_shows_the_line(runner):
    outcome = runner.run(request("hang", timeout=0.6))
    assert outcome.ending == TimedOut(limit=0.6)
    assert "hang.py" in outcome.stderr_tail
    assert outcome.result["before"] == "hang"


def test_what_the_child_started_ends_with_it(runner):
    outcome = runner.run(request("grandchild"))
    assert outcome.ending == Exited(code=0, done=True)
    assert outlived(int(outcome.result["pid"])) == {}


def test_closed_descriptors_do_not_end_the_child(runner):
    assert runner.run(request("close_files")).ending == Exited(code=0, done=True)


def test_a_debugger_or_a_tool_is_refused_in_words(runner):
    outcome = runner.run(request("raises_plain", debugger=True))
    assert (outcome.ending, outcome.debugger_problem) == (Exited(code=1, done=True), portable.NO_DEBUGGER)
    assert runner.run(request("raises_plain", wrapper=("valgrind",))).ending == NotStarted(reason=portable.NO_WRAPPER)


@pytest.mark.parametrize(("code", "name"), [(0xC0000005, "SIGSEGV"), (0xC0000094, "SIGFPE"), (3, "SIGABRT")])
def test_faults_of_windows_are_signals(monkeypatch, code, name):
    monkeypatch.setattr(portable.os, "name", "nt")
    assert portable._signal_of(code).name == name
    assert portable._signal_of(1) is None


def test_a_child_needs_nothing_of_posix(place, tmp_path):
    where = str(ROOT / "tests" / "portable")
    text = f"import os, sys\nif 'AOTIDOCTOR_RUN' in os.environ:\n    sys.path.append({where!r})\n"
    (tmp_path / "sitecustomize.py").write_text(text + "    import without_posix; without_posix.take_away()\n")
    environ = {**ENVIRON, "TMPDIR": str(place), "PYTHONPATH": str(tmp_path)}
    with PortableRunner(environ=environ) as made:
        raised, hung = made.run(request("raises_plain", memory_limit=1 << 40)), made.run(request("hang", timeout=2.0))
    assert (raised.ending, raised.error.type) == (Exited(code=1, done=True), "RuntimeError"), raised.stderr_tail
    assert any("no memory limit" in line for line in raised.warnings)
    assert hung.ending == TimedOut(limit=2.0)
    assert "hang.py" in hung.stderr_tail


def test_no_child_outlives_its_parent(place):
    script = """
        import os, sys
        from aotidoctor.model.jobs import Script
        from aotidoctor.model.run import Request
        from aotidoctor.runner.portable import PortableRunner
        runner = PortableRunner(environ=os.environ, on_event=lambda _run, stage: stage == "run1" and os.kill(os.getpid(), 9))
        runner.run(Request(probe="hang", job="script", payload=Script(path=sys.argv[1]), timeout=60.0))
    """
    environ = {**ENVIRON, "TMPDIR": str(place), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(script), str(FAULTS / "hang.py")]
    done = subprocess.run(command, env=environ, check=False, timeout=60, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    [pid] = place.glob("aotidoctor-*/R1-*/pid")
    assert outlived(int(pid.read_text())) == {}
