"""Every way a child can end or misbehave, each in a fresh interpreter without torch."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aotidoctor.model.jobs import Script
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Request, Signalled, TimedOut
from aotidoctor.runner.runner import Runner
from aotidoctor.runner.start_child import child_environ
from tests.waiting import is_alive, outlived, soon

FAULTS = Path(__file__).parents[2] / "faults"
ROOT = Path(__file__).parents[3]
no_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
# A new interpreter, and one forked off a process that has imported torch.
EITHER = [True, pytest.param(False, marks=no_torch)]


@pytest.fixture
def tmp_base(tmp_path: Path) -> Path:
    base = tmp_path / "tmpdir"
    base.mkdir()
    return base


@pytest.fixture
def runner(tmp_base: Path):
    with Runner(environ={**os.environ, "TMPDIR": str(tmp_base)}) as made:
        yield made
    assert list(tmp_base.iterdir()) == [], "something was left in TMPDIR"


def request(name: str, **changes: object) -> Request:
    payload = Script(path=str(FAULTS / f"{name}.py"))
    return Request(**{"probe": name, "job": "script", "payload": payload, "fresh": True, "timeout": 20.0, **changes})


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("segv", signal.SIGSEGV, "Segmentation fault"),
        ("abort", signal.SIGABRT, "Aborted"),
        ("kill_self", signal.SIGKILL, ""),
    ],
)
def test_signal(runner: Runner, name: str, number: int, text: str) -> None:
    outcome = runner.run(request(name))
    assert outcome.ending == Signalled(signal=int(number), name=signal.Signals(number).name)
    assert outcome.stage == "run1"
    assert text in outcome.stderr_tail
    assert "run1" not in outcome.stages
    assert "import" in outcome.stages


def test_output_before_a_crash_is_not_lost(runner: Runner) -> None:
    assert runner.run(request("segv")).stdout_tail == "about to die\n"


def test_exit_zero_without_a_result_is_not_success(runner: Runner) -> None:
    outcome = runner.run(request("exit_zero"))
    assert outcome.ending == Exited(code=0, done=False)
    assert outcome.stage == "run1"


def test_sys_exit_is_an_exception(runner: Runner) -> None:
    outcome = runner.run(request("sys_exit"))
    assert outcome.ending == Exited(code=1, done=True)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message) == ("SystemExit", "gone")


def test_exception_keeps_type_text_and_traceback(runner: Runner) -> None:
    outcome = runner.run(request("raises_plain"))
    assert outcome.error is not None
    assert outcome.error.type == "RuntimeError"
    assert outcome.error.message.startswith("index out of bounds: 0 <= tmp2 < 100L\nsecond line")
    assert "raises_plain.py" in outcome.error.traceback


def test_exception_that_has_no_text(runner: Runner) -> None:
    outcome = runner.run(request("raises"))
    assert outcome.ending == Exited(code=1, done=True)
    assert outcome.error is not None
    assert outcome.error.type == "OddError"


@pytest.mark.parametrize("name", ["hang", "hang_native"])
def test_hang_is_stopped_at_the_limit(runner: Runner, name: str) -> None:
    # It would hang for ten minutes, and then end by itself.
    outcome = runner.run(request(name, timeout=0.6))
    assert outcome.ending == TimedOut(limit=0.6)
    assert outcome.stage == "run1"


def test_hang_says_where_and_keeps_what_it_had(runner: Runner) -> None:
    outcome = runner.run(request("hang", timeout=0.6))
    assert "hang.py" in outcome.stderr_tail
    assert outcome.result["before"] == "hang"


def test_flood_is_counted_and_does_not_fill_the_disk(runner: Runner) -> None:
    outcome = runner.run(request("flood"))
    assert outcome.ending == Exited(code=0, done=True)
    assert outcome.stdout_tail.endswith("xxxthe last words")
    assert len(outcome.stdout_tail) == 16 * 1024
    # Cut at least once, so a lower bound; more than what may stay on disk.
    assert 64 << 20 < outcome.stdout_bytes <= (300 << 20) + 14


def test_long_line(runner: Runner) -> None:
    outcome = runner.run(request("long_line"))
    assert outcome.ending == Exited(code=0, done=True)
    assert outcome.stderr_bytes == 5_000_000
    assert outcome.stderr_tail == "y" * 16 * 1024


@pytest.mark.parametrize("name", ["grandchild", "daemon"])
def test_descendants_are_killed(runner: Runner, name: str) -> None:
    outcome = runner.run(request(name))
    assert outcome.ending == Exited(code=0, done=True)
    assert outlived(int(outcome.result["pid"])) == {}


def test_channel_survives_closed_and_reused_descriptors(runner: Runner) -> None:
    outcome = runner.run(request("close_files"))
    assert outcome.ending == Exited(code=0, done=True)
    assert outcome.result["found_in_mine"] == ""


def test_garbage_in_the_channel_is_skipped_and_said(runner: Runner) -> None:
    outcome = runner.run(request("garbage"))
    assert outcome.ending == Exited(code=0, done=True)
    assert outcome.result["after"] == "garbage"
    assert outcome.stage == "done"
    assert any("side channel" in text for text in outcome.warnings)


def test_result_that_is_too_big_is_left_out_and_said(runner: Runner) -> None:
    outcome = runner.run(request("big_result"))
    assert outcome.ending == Exited(code=0, done=True)
    assert outcome.result["small"] == 1
    assert "big" not in outcome.result
    assert any("omitted" in text for text in outcome.warnings)


def test_memory_limit_is_an_exception_not_a_kill(runner: Runner) -> None:
    outcome = runner.run(request("hog", memory_limit=1 << 30))
    assert outcome.ending == Exited(code=1, done=True)
    assert outcome.error is not None
    assert outcome.error.type == "MemoryError"
    assert outcome.peak_rss is not None
    assert 1 << 27 < outcome.peak_rss < 1 << 31


def test_private_directories_are_removed(runner: Runner, tmp_base: Path) -> None:
    outcome = runner.run(request("litter"))
    assert outcome.ending == Exited(code=0, done=True)
    assert Path(str(outcome.result["tmp"])).is_relative_to(tmp_base)
    assert not Path(str(outcome.result["tmp"])).exists()
    assert not Path(str(outcome.result["cwd"])).exists()


def test_environment_limits_and_warnings(tmp_base: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "A": "old", "TMPDIR": str(tmp_base)}
    with Runner(environ=environ) as runner:
        outcome = runner.run(request("environment", env={"A": None, "B": "new"}))
    assert (outcome.result["a"], outcome.result["b"]) == (None, "new")
    assert outcome.result["env_took_effect"] == {"A": True, "B": True}
    assert outcome.result["core"] in (0, 1)
    assert outcome.result["session"] is True
    assert not any(str(path).startswith(str(ROOT / "aotidoctor")) for path in outcome.result["path"])
    assert any("look here" in text for text in outcome.warnings)


def test_stages_have_seconds_and_values_are_strict_json(runner: Runner) -> None:
    outcome = runner.run(request("slow"))
    # The program sleeps as long itself.
    assert 0.3 <= outcome.stages["run1"] <= outcome.seconds
    assert outcome.result["value"] == "Infinity"
    assert outcome.result["list"] == [1, 2]


def test_interpreter_that_does_not_exist(tmp_base: Path) -> None:
    with Runner(environ={"TMPDIR": str(tmp_base)}, python="/no/such/python") as runner:
        runner.prewarm()
        fresh, forked = runner.run(request("slow")), runner.run(request("slow", fresh=False))
    assert isinstance(fresh.ending, NotStarted)
    assert isinstance(forked.ending, NotStarted)
    assert "/no/such/python" in fresh.ending.reason


def test_torch_that_cannot_be_imported(tmp_path: Path, tmp_base: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so: wrong ELF class')")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_base)}
    payload = Script(path=str(FAULTS / "slow.py"), torch=True)
    with Runner(environ=environ) as runner:
        outcomes = [runner.run(request("slow", payload=payload, fresh=fresh)) for fresh in (True, False, False)]
    for outcome in outcomes:
        assert isinstance(outcome.ending, NotStarted)
        assert "wrong ELF class" in outcome.ending.reason
        assert outcome.error is not None
        assert outcome.error.type == "ImportError"


@pytest.mark.parametrize("fresh", EITHER)
def test_a_request_that_cannot_be_read_is_our_failure(runner: Runner, fresh: bool) -> None:
    outcome = runner.run(request("abort", payload=Script(path=7), fresh=fresh))
    assert isinstance(outcome.ending, NotStarted)
    assert outcome.ending.reason.startswith("aotidoctor failed here")
    assert "Script.path: 7, expected str" in outcome.ending.reason
    assert (outcome.stage, outcome.stdout_bytes) == ("import", 0)


@pytest.mark.parametrize("fresh", EITHER)
def test_a_part_of_ours_that_cannot_be_imported_is_no_failure_of_the_users_code(tmp_path, tmp_base, fresh) -> None:
    broken = "import sys\nclass Broken:\n    def find_spec(self, name, path=None, target=None):\n"
    broken += "        if name == 'aotidoctor.worker.user_code':\n            raise SyntaxError('invalid syntax')\n"
    (tmp_path / "sitecustomize.py").write_text(f"{broken}sys.meta_path.insert(0, Broken())\n")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_base)}
    with Runner(environ=environ) as runner:
        outcome = runner.run(request("slow", fresh=fresh))
    assert isinstance(outcome.ending, NotStarted)
    assert outcome.ending.reason.startswith("aotidoctor failed here")
    assert outcome.stage == "import"


def test_broken_tmpdir_of_the_user_is_left_broken(tmp_path: Path) -> None:
    with Runner(environ={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path / "missing")}) as runner:
        outcome = runner.run(request("litter"))
    assert outcome.error is not None
    assert outcome.error.type == "FileNotFoundError"
    assert str(tmp_path / "missing" / "locked") in outcome.error.message


def test_interrupt_kills_the_child_and_goes_on_up(runner: Runner, tmp_path: Path) -> None:
    script = tmp_path / "tell.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    timer = threading.Timer(0.8, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        runner.run(request("tell", payload=Script(path=str(script))))
    assert outlived(int((tmp_path / "pid").read_text())) == {}
    assert isinstance(runner.run(request("exit_zero")).ending, Exited)


def test_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "tell.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    program = (
        "import os\nfrom aotidoctor.runner.runner import Runner\nfrom aotidoctor.model.jobs import Script\nfrom aotidoctor.model.run import Request\n"
        f"Runner(environ=os.environ).run(Request(probe='x', job='script', payload=Script(path={str(script)!r}), fresh=True))"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environ)
    try:
        assert soon(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        child = int((tmp_path / "pid").read_text())
        assert is_alive(child)
    finally:
        parent.kill()
        parent.wait()
    assert outlived(child) == {}


# It ends when the other one is there, too.
MEETS = """
import pathlib, time
here = pathlib.Path({folder!r})
(here / {own!r}).touch()
while not (here / {other!r}).exists():
    time.sleep(0.01)
"""


def test_two_at_a_time(runner: Runner, tmp_path: Path) -> None:
    for own, other in (("one", "two"), ("two", "one")):
        (tmp_path / f"{own}.py").write_text(MEETS.format(folder=str(tmp_path), own=own, other=other))
    asked = [request("slow", payload=Script(path=str(tmp_path / f"{name}.py"))) for name in ("one", "two")]
    started = [runner.start(one) for one in asked]
    outcomes = [one if isinstance(one, Outcome) else runner.finish(one) for one in reversed(started)]
    assert {outcome.ending for outcome in outcomes} == {Exited(code=0, done=True)}
    assert [outcome.id for outcome in outcomes] == ["R2", "R1"]


def test_stage_events(tmp_base: Path) -> None:
    seen: list[tuple[str, str]] = []
    with Runner(environ={"TMPDIR": str(tmp_base)}, on_event=lambda run, stage: seen.append((run, stage))) as runner:
        runner.run(request("slow"))
    assert ("R1", "run1") in seen


def test_unstarted_runner_leaves_nothing(tmp_base: Path) -> None:
    Runner(environ={"TMPDIR": str(tmp_base)}).close()
    assert list(tmp_base.iterdir()) == []


def test_oom_kill_is_recognised_by_the_kernels_counter(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([{"memory.events": 1}, {"memory.events": 2}])
    monkeypatch.setattr("aotidoctor.runner.runner.oom_kills", lambda: next(counts))
    ending = runner.run(request("kill_self")).ending
    assert isinstance(ending, OutOfMemory)
    assert "from 1 to 2" in ending.reason


def test_python_that_is_a_wrapper(tmp_path: Path, runner: Runner, tmp_base: Path) -> None:
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\n{sys.executable} "$@"\nexit $?\n')
    wrapper.chmod(0o755)
    with Runner(environ={**os.environ, "TMPDIR": str(tmp_base)}, python=str(wrapper)) as wrapped:
        assert wrapped.run(request("slow")).ending == Exited(code=0, done=True)
        assert wrapped.run(request("hang", timeout=0.5)).ending == TimedOut(limit=0.5)


def test_relative_search_paths_are_those_of_the_users_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = {"PYTHONPATH": f"src{os.pathsep}/abs{os.pathsep}", "LD_LIBRARY_PATH": "lib", "OTHER": "lib"}
    made = child_environ(given, {}, token="x")
    assert made["PYTHONPATH"] == f"{tmp_path}/src{os.pathsep}/abs"
    assert (made["LD_LIBRARY_PATH"], made["OTHER"]) == (f"{tmp_path}/lib", "lib")


KILLED_PARENT = """
import json, os, sys
from aotidoctor.model.jobs import Script
from aotidoctor.model.run import Request
from aotidoctor.runner.runner import Runner

with Runner(environ=dict(os.environ)) as runner:
    for path in sys.argv[1:]:
        payload = Script(path=path)
        outcome = runner.run(Request(probe="x", job="script", payload=payload, fresh=True, timeout=100.0))
        print(type(outcome.ending).__name__, getattr(outcome.ending, "name", ""))
"""


def test_code_that_kills_its_parent_does_not_kill_the_command(tmp_base: Path) -> None:
    faults = [str(FAULTS / f"{name}.py") for name in ("kill_parent", "environment", "kill_parent")]
    environ = {
        **os.environ,
        "TMPDIR": str(tmp_base),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path])),
    }
    command = [sys.executable, "-c", KILLED_PARENT, *faults]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.splitlines() == ["Signalled SIGKILL", "Exited ", "Signalled SIGKILL"], done.stderr
    assert done.returncode == 0
    assert list(tmp_base.iterdir()) == []


@no_torch
def test_a_room_and_the_folder_of_a_run_go_with_a_command_that_is_killed(tmp_base: Path) -> None:
    """Also where the children's TMPDIR is another one than that of the command."""
    (tmp_base / "theirs").mkdir()
    code = f"""
import os, signal
from aotidoctor.model.jobs import Script
from aotidoctor.model.run import Request
from aotidoctor.runner.runner import Runner
theirs = {str(tmp_base / "theirs")!r}
runner = Runner(environ={{**os.environ, "TMPDIR": theirs}}, place={str(tmp_base)!r})
with runner.room() as room:
    (room / "model.pt2").write_bytes(b"x" * 1000)
    payload = Script(path={str(FAULTS / "slow.py")!r}, torch=True)
    started = runner.start(Request(probe="x", job="script", payload=payload, timeout=100.0))
    print(room, *os.listdir(theirs), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    room, theirs = done.stdout.split()
    assert Path(room).is_relative_to(tmp_base)
    assert theirs.startswith("aotidoctor-")
    # By os.walk: unlike rglob it passes over a folder that goes meanwhile.
    assert soon(lambda: [(folders, files) for _, folders, files in os.walk(tmp_base)] == [(["theirs"], []), ([], [])])
