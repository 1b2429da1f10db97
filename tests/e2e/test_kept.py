"""One load for several questions: a keeper forks, and no question is seen by another one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.model.jobs import InputsSource, Run, UserCode
from aotidoctor.model.run import BEHIND, Exited, Request, Signalled
from aotidoctor.runner.runner import Runner

pytestmark = [pytest.mark.torch]


@pytest.fixture(scope="module")
def tmp_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tmpdir")


@pytest.fixture(scope="module")
def runner(tmp_base: Path):
    with Runner(environ={**os.environ, "TMPDIR": str(tmp_base)}) as made:
        yield made
    assert list(tmp_base.iterdir()) == [], "something was left in TMPDIR"


@pytest.fixture
def request_of(packages):
    def make(name="mlp", *, env=None, **changes) -> Request:
        source = InputsSource(path=str(packages.sample_path(name)))
        payload = replace(Run(package=str(packages.package(name)), inputs=source, observe=()), **changes)
        return Request(probe="x", job="run", payload=payload, env=env or {}, timeout=60.0)

    return make


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_a_second_question_is_asked_without_a_load(runner, request_of) -> None:
    first, second = runner.run(request_of()), runner.run(request_of(calls=2))
    assert "load" in first.stages
    assert "load" not in second.stages
    assert [len(outcome.result["outputs"]) for outcome in (first, second)] == [1, 2]
    digests = {leaf["sha256"] for outcome in (first, second) for call in outcome.result["outputs"] for leaf in call}
    assert len(digests) == 1
    assert second.result["call_spec"] == first.result["call_spec"]


def test_it_is_as_private_as_any_other_run(runner, request_of) -> None:
    """What one question does to the allocator, the environment or the library is not seen by the next."""
    runner.run(request_of())
    filled = runner.run(request_of(perturb=90))
    checked = runner.run(request_of(env={"AOTI_RUNTIME_CHECK_INPUTS": "1"}))
    traced = runner.run(request_of(trace=True))
    assert filled.result["memory_filled"] is True
    assert checked.result["env_took_effect"] == {"AOTI_RUNTIME_CHECK_INPUTS": True}
    assert traced.trace is not None
    last = runner.run(request_of())
    assert not any("load" in outcome.stages for outcome in (filled, checked, traced, last))
    assert "memory_filled" not in last.result
    assert last.trace is None


def test_a_crash_ends_neither_the_keeper_nor_what_it_keeps(runner, request_of, tmp_path) -> None:
    crash = tmp_path / "crash.py"
    crash.write_text(
        "import ctypes\nclass Crash:\n    def __call__(self, *_):\n        ctypes.string_at(0)\n"
        "def after_load(model):\n    model.loader = type('Loader', (), {'run': Crash(), 'boxed_run': Crash(),"
        " 'get_call_spec': model.loader.get_call_spec, 'get_metadata': dict})()\n"
    )
    died = [runner.run(request_of(code=UserCode(setup=str(crash)))) for _ in range(2)]
    assert [type(outcome.ending) for outcome in died] == [Signalled, Signalled]
    assert "load" not in died[1].stages
    assert alive(died[0].result["kept"])


def test_another_package_and_another_way_to_load_are_loaded(runner, request_of) -> None:
    runner.run(request_of())
    for changed in (request_of("linear"), request_of("linear", heap_checks=True)):
        outcome = runner.run(changed)
        assert outcome.ending == Exited(code=0, done=True)
        assert "load" in outcome.stages


def test_threads_of_a_setup_module_are_not_forked(runner, request_of, tmp_path) -> None:
    setup = tmp_path / "threads.py"
    setup.write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n")
    outcome = runner.run(request_of(code=UserCode(setup=str(setup))))
    assert outcome.ending == Exited(code=0, done=True)
    assert outcome.result["kept"] is None


@pytest.mark.parametrize("starts_thread", [False, True])
def test_a_keeper_imports_what_the_first_run_does_not_need(starts_thread, request_of, tmp_path) -> None:
    """A module that starts a thread ends it: it could not be forked soundly any more."""
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    (tmp_path / "late.py").write_text(
        f"import os\nopen(f'{tmp_path}/{{os.getpid()}}.imported', 'w').close()\n{thread if starts_thread else ''}"
    )
    (tmp_path / "runs").mkdir()
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environ = {**os.environ, "TMPDIR": str(tmp_path / "runs"), "PYTHONPATH": path}
    with Runner(environ=environ, preload=(BEHIND, "late")) as runner:
        first, second = runner.run(request_of()), runner.run(request_of())
        by_keeper = (tmp_path / f"{first.result['kept']}.imported").exists()
    assert by_keeper
    assert second.ending == Exited(code=0, done=True)
    assert ("load" in second.stages) is starts_thread
    assert len(list(tmp_path.glob("*.imported"))) == 1 + starts_thread
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_keeper_that_died_is_replaced(runner, request_of) -> None:
    first = runner.run(request_of("pointwise"))
    os.kill(first.result["kept"], 9)
    second = runner.run(request_of("pointwise"))
    assert second.ending == Exited(code=0, done=True)
    assert "load" in second.stages
    assert "load" not in runner.run(request_of("pointwise")).stages


def test_closing_ends_the_keeper(request_of, tmp_path) -> None:
    with Runner(environ={**os.environ, "TMPDIR": str(tmp_path)}) as runner:
        kept = runner.run(request_of()).result["kept"]
        assert alive(kept)
    assert not Path(f"/proc/{kept}").exists()
    assert list(tmp_path.iterdir()) == []
