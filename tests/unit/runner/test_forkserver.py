"""The warm worker: forks that are private, killed with what they start, and cleaned up after."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aotidoctor.commands.diagnose_package import REFERENCE_MODULES, early_modules
from aotidoctor.model.case import Options
from aotidoctor.model.jobs import Run, Script
from aotidoctor.model.run import BEHIND, Exited, Outcome, Request, Signalled, TimedOut
from aotidoctor.runner.runner import Runner
from tests.waiting import outlived, soon, state

FAULTS = Path(__file__).parents[2] / "faults"
ROOT = Path(__file__).parents[3]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


@pytest.fixture(scope="module")
def tmp_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tmpdir")


@pytest.fixture(scope="module")
def runner(tmp_base: Path):
    with Runner(environ={**os.environ, "TMPDIR": str(tmp_base)}) as made:
        yield made
    assert list(tmp_base.iterdir()) == [], "something was left in TMPDIR"


def request(name: str, **changes: object) -> Request:
    payload = Script(path=str(FAULTS / f"{name}.py"), torch=True)
    return Request(**{"probe": name, "job": "script", "payload": payload, "timeout": 20.0, **changes})


def test_fork_is_quick_and_private(runner: Runner) -> None:
    first = runner.run(request("environment", env={"A": "1"}))
    second = runner.run(request("environment"))
    assert first.forked
    assert second.forked
    assert (first.result["a"], second.result["a"]) == ("1", None)
    assert first.result["session"] is True
    assert first.result["collects"] is True
    assert runner.torch_version is not None


def test_a_new_interpreter_looks_for_cycles_once_torch_is_imported(runner: Runner) -> None:
    outcome = runner.run(request("environment", fresh=True))
    assert not outcome.forked
    assert outcome.result["collects"] is True


def test_the_forkserver_has_no_threads_when_it_forks(runner: Runner) -> None:
    runner.run(request("exit_zero"))
    assert runner._launcher is not None
    assert runner._launcher.facts is not None
    assert runner._launcher.facts["threads"] == 1


def test_threads_of_a_fork_wait_without_spinning_and_its_environment_is_the_users(tmp_base: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_base), "OMP_DISPLAY_ENV": "VERBOSE", "OMP_WAIT_POLICY": "active"}
    with Runner(environ=environ) as made:
        outcome = made.run(request("environment"))
        shown = (made._launcher._work_dir / "stderr").read_text()
    assert outcome.forked
    assert outcome.result["wait_policy"] == "active"
    assert "GOMP_SPINCOUNT = '0'" in shown


@pytest.mark.parametrize(
    "name",
    [
        "OMP_NUM_THREADS",
        "LD_PRELOAD",
        "PYTHONHASHSEED",
        "CUDA_LAUNCH_BLOCKING",
        "TORCH_SHOW_CPP_STACKTRACES",
        "MALLOC_PERTURB_",
    ],
)
def test_what_is_read_at_start_needs_a_fresh_process(name: str) -> None:
    from aotidoctor.runner.start_child import needs_fresh

    assert needs_fresh(request("slow", env={name: "1"}))


@pytest.mark.parametrize("name", ["AOTI_RUNTIME_CHECK_INPUTS", "TMPDIR", "LANGUAGE"])
def test_what_is_read_later_can_be_forked(name: str) -> None:
    from aotidoctor.runner.start_child import needs_fresh

    assert not needs_fresh(request("slow", env={name: "1"}))


def test_other_devices_need_a_fresh_process() -> None:
    from aotidoctor.runner.start_child import needs_fresh

    assert needs_fresh(Request(probe="x", job="run", payload=Run(device="cuda")))
    assert needs_fresh(Request(probe="x", job="run", payload=Run(treatment=({"op": "to", "device": "cuda:0"},))))
    assert not needs_fresh(Request(probe="x", job="run", payload=Run(treatment=({"op": "tmpdir"},))))


def test_a_fault_does_not_touch_the_next_run(runner: Runner) -> None:
    assert isinstance(runner.run(request("segv")).ending, Signalled)
    assert runner.run(request("slow")).ending == Exited(code=0, done=True)


def test_a_fork_that_escapes_its_session_is_found_by_its_marker(runner: Runner) -> None:
    outcome = runner.run(request("daemon"))
    assert outcome.forked
    assert outlived(int(outcome.result["pid"])) == {}


def test_strays_of_one_run_are_not_those_of_another(runner: Runner) -> None:
    pending = runner.start(request("hang", timeout=2.0))
    assert runner.run(request("daemon")).ending == Exited(code=0, done=True)
    assert not isinstance(pending, Outcome)
    assert not pending.child.watch.wait(0.0)
    runner.finish(pending)


def test_a_dead_forkserver_is_replaced(runner: Runner) -> None:
    runner.run(request("exit_zero"))
    assert runner._launcher is not None
    os.kill(runner._launcher.warm().spawned.pid, signal.SIGKILL)
    assert runner.run(request("slow")).ending == Exited(code=0, done=True)


def test_parent_killed_means_everything_goes(tmp_path: Path) -> None:
    script = tmp_path / "tell.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    program = (
        "import os\nfrom aotidoctor.runner.runner import Runner\nfrom aotidoctor.model.jobs import Script\nfrom aotidoctor.model.run import Request\n"
        f"Runner(environ=os.environ).run(Request(probe='x', job='script', payload=Script(path={str(script)!r})))"
    )
    base = tmp_path / "base"
    base.mkdir()
    environ = {**os.environ, "TMPDIR": str(base), "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environ)
    try:
        assert soon(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        child = int((tmp_path / "pid").read_text())
    finally:
        parent.kill()
        parent.wait()
    assert outlived(child) == {}
    assert soon(lambda: not list(base.iterdir()))


def test_parent_killed_while_torch_is_imported(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    program = (
        "import os, time\nfrom aotidoctor.runner.runner import Runner\n"
        "Runner(environ=os.environ).prewarm()\nos.kill(os.getpid(), 9)"
    )
    environ = {**os.environ, "TMPDIR": str(base), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], env=environ, check=False)
    assert [path.name.startswith("aotidoctor-") for path in base.iterdir()] == [True]
    assert soon(lambda: not list(base.iterdir()))


def test_what_the_warm_worker_makes_while_it_imports_goes_with_it(tmp_path: Path) -> None:
    base, modules = tmp_path / "base", tmp_path / "modules"
    base.mkdir()
    modules.mkdir()
    (modules / "maker.py").write_text("import tempfile\nMADE = tempfile.mkdtemp()\n")
    (tmp_path / "ask.py").write_text(
        "import maker, tempfile\nRESULT = {'made': maker.MADE, 'mine': tempfile.mkdtemp()}\n"
    )
    environ = {**os.environ, "TMPDIR": str(base), "PYTHONPATH": str(modules)}
    asked = Request(probe="ask", job="script", payload=Script(path=str(tmp_path / "ask.py"), torch=True), timeout=20.0)
    with Runner(environ=environ, preload=("maker",)) as runner:
        outcome = runner.run(asked)
    assert outcome.forked
    assert Path(str(outcome.result["made"])).parent != Path(str(outcome.result["mine"])).parent
    assert list(base.iterdir()) == []


def test_modules_that_the_first_run_does_not_need_are_imported_behind_it(tmp_path: Path) -> None:
    """And one that fails keeps nothing from running."""
    (tmp_path / "early.py").touch()
    (tmp_path / "broken.py").write_text("raise RuntimeError('broken')\n")
    (tmp_path / "late.py").touch()
    (tmp_path / "ask.py").write_text("import sys\nRESULT = {name: name in sys.modules for name in ('early', 'late')}\n")
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    asked = Request(probe="ask", job="script", payload=Script(path=str(tmp_path / "ask.py"), torch=True), timeout=20.0)
    with Runner(environ=environ, preload=("early", BEHIND, "broken", "late")) as runner:
        first, second = runner.run(asked), runner.run(asked)
    assert first.forked
    assert (first.result["early"], first.result["late"]) == (True, False)
    assert (second.result["early"], second.result["late"]) == (True, True)


def test_only_behind_a_large_package_is_there_time_for_the_modules_of_a_reference(tmp_path: Path) -> None:
    small, large = tmp_path / "small.pt2", tmp_path / "large.pt2"
    small.touch()
    with large.open("wb") as file:
        file.truncate(300 << 20)
    options = Options(reference="exported.pt2")
    assert early_modules(options, str(large)) == (BEHIND, *REFERENCE_MODULES)
    for package in (str(small), str(tmp_path / "nothing"), "https://models.example/model.pt2", "\0", ""):
        assert early_modules(options, package) == REFERENCE_MODULES
    assert early_modules(Options(), str(large)) == ()


# Both keep the process that made the child from doing anything.
HOLDING = ("stop_parent", "trace_parent")


@pytest.mark.parametrize("fault", HOLDING)
def test_a_child_that_stops_the_warm_worker_ends_at_its_limit_and_the_next_one_runs(fault: str, tmp_path: Path) -> None:
    with Runner(environ={**os.environ, "TMPDIR": str(tmp_path)}) as runner:
        runner.run(request("exit_zero"))
        stopped = runner.run(request(fault, timeout=1.0))
        if fault == "trace_parent" and isinstance(stopped.ending, Exited):
            pytest.skip("no process may trace another here")
        assert stopped.ending == TimedOut(limit=1.0)
        after = runner.run(request("environment"))
        assert after.ending == Exited(code=0, done=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", HOLDING)
def test_nothing_outlives_a_killed_parent_whose_warm_worker_was_stopped(fault: str, tmp_path: Path) -> None:
    code = f"""
import os, sys
from aotidoctor.model.jobs import Script
from aotidoctor.model.run import Request
from aotidoctor.runner.runner import Runner
payload = Script(path={str(FAULTS / f"{fault}.py")!r}, torch=True)
runner = Runner(environ={{**os.environ, "TMPDIR": {str(tmp_path)!r}}})
started = runner.start(Request(probe="x", job="script", payload=payload, timeout=100.0))
print(started.child.watch.pid, runner._launcher._forkserver.spawned.pid, flush=True)
runner.finish(started)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT)
    pids = [int(part) for part in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert soon(lambda: state(pids[1])[0] in "Tt"), state(pids[1])
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert outlived(*pids) == {}
    assert soon(lambda: not list(tmp_path.iterdir()))
