"""A debugger beside a child: what it tells, why there is none, and that neither it nor a stopped child stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest

from aotidoctor.model.jobs import Script
from aotidoctor.model.run import Exited, Outcome, Request, Signalled, TimedOut
from aotidoctor.runner import gdb
from aotidoctor.runner.gdb import Gdb, GdbError, _demangle_stack, _missing
from aotidoctor.runner.runner import Runner
from tests.waiting import soon

FAULTS = Path(__file__).parents[2] / "faults"
SEGV = Signalled(signal=int(signal.SIGSEGV), name="SIGSEGV")
needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")

# Answers like gdb does, command by command.
ANSWERING = """#!/bin/sh
while IFS= read -r line; do
  case "$line" in
    attach*) echo "ptrace: Operation not permitted." ;;
    info*) echo "No threads." ;;
    echo*) rest="${line#*@@}"; printf '\\n@@%s@@\\n' "${rest%%@@*}" ;;
  esac
done
"""
SILENT = "#!/bin/sh\nexec /bin/sleep 600\n"
BABBLING = "#!/bin/sh\nexec /usr/bin/yes 'What is the meaning of this? @@1@@'\n"
DYING = "#!/bin/sh\necho 'gdb: error while loading shared libraries: libpython3.13.so.1.0'\nexit 127\n"


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes whose directory lies below ``folder``: children and debuggers of a run of ours."""
    return [line for entry in Path("/proc").iterdir() if (line := _command_in(entry, folder)) is not None]


def _command_in(process: Path, folder: Path) -> str | None:
    try:
        inside = process.name.isdigit() and os.readlink(process / "cwd").startswith(str(folder))
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode() if inside else None
    except OSError:
        return None


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


def runner_with(tmp_path: Path, script: str | None) -> Runner:
    """A runner whose user has nothing but this gdb on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if script is not None:
        (folder / "gdb").write_text(script)
        (folder / "gdb").chmod(0o755)
    return Runner(environ={"PATH": str(folder), "TMPDIR": str(tmp_path)})


def request(name: str, **changes: object) -> Request:
    payload = Script(path=str(FAULTS / f"{name}.py"))
    return Request(
        **{
            "probe": name,
            "job": "script",
            "payload": payload,
            "fresh": True,
            "timeout": 20.0,
            "debugger": True,
            **changes,
        }
    )


def run(runner: Runner, wanted: Request) -> Outcome:
    outcome = runner.run(wanted)
    if outcome.debugger_problem is not None and "ptrace is forbidden" in outcome.debugger_problem:
        pytest.skip(outcome.debugger_problem)
    return outcome


@needs_gdb
@pytest.mark.parametrize(("name", "number"), [("segv", signal.SIGSEGV), ("abort", signal.SIGABRT)])
def test_the_stack_at_the_signal_and_the_ending_as_without(runner: Runner, name: str, number: signal.Signals) -> None:
    outcome = run(runner, request(name))
    assert outcome.ending == Signalled(signal=int(number), name=number.name)
    assert outcome.debugger_problem is None
    assert f"received signal {number.name}" in outcome.debugger_output
    assert f"signo={int(number)} " in outcome.debugger_output
    assert "\n#0 " in outcome.debugger_output
    # Python's own words about the signal come after the debugger has let go.
    assert f"{name}.py" in outcome.stderr_tail
    assert outcome.stage == "run1"


@needs_gdb
def test_a_child_that_is_well(runner: Runner) -> None:
    outcome = run(runner, request("slow"))
    assert outcome.ending == Exited(code=0, done=True)
    assert outcome.debugger_problem is None
    assert outcome.debugger_output.startswith("=== end\n")
    assert outcome.result["list"] == [1, 2]


@needs_gdb
@pytest.mark.parametrize("asked", [{"debugger": True}, {"debugger": False, "stacks": True}])
def test_a_hang_is_looked_at_before_its_end(runner: Runner, asked: dict[str, bool]) -> None:
    outcome = run(runner, request("hang_native", timeout=0.6, **asked))
    assert outcome.ending == TimedOut(limit=0.6)
    assert outcome.debugger_problem is None
    assert "=== stacks\nThread 1 " in outcome.debugger_output
    assert "\n#0 " in outcome.debugger_output
    assert outcome.debugger_output.startswith("=== tasks\nmachine=")


def test_what_proc_tells_of_a_hang_is_always_there(runner: Runner) -> None:
    outcome = runner.run(request("hang", timeout=0.6, debugger=False))
    assert outcome.debugger_problem is None
    lines = outcome.debugger_output.splitlines()
    assert lines[0] == "=== tasks"
    assert lines[2].startswith("tid=")
    assert " state=S " in lines[2]


def test_nothing_is_said_of_debuggers_that_nobody_asked_for(runner: Runner) -> None:
    outcome = runner.run(request("segv", debugger=False))
    assert (outcome.debugger_output, outcome.debugger_problem) == ("", None)
    assert "attach" not in outcome.stages


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (None, "gdb is not installed; apt-get install gdb"),
        (ANSWERING, "ptrace is forbidden"),
        (SILENT, "did not answer in time"),
        (BABBLING, "did not answer in time"),
        (DYING, "libpython3.13.so.1.0"),
    ],
)
def test_without_a_debugger_the_run_is_as_ever_and_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, problem: str
) -> None:
    monkeypatch.setattr(gdb, "ATTACH_S", 0.5)
    with runner_with(tmp_path, script) as runner:
        outcome = runner.run(request("segv"))
    assert outcome.ending == SEGV
    assert outcome.stage == "run1"
    assert problem in (outcome.debugger_problem or "")
    assert outcome.debugger_output == ""
    assert processes_in(tmp_path) == []


def test_the_reason_at_a_time_limit(tmp_path: Path) -> None:
    with runner_with(tmp_path, ANSWERING) as runner:
        outcome = runner.run(request("hang", timeout=0.5, debugger=False, stacks=True))
    assert outcome.ending == TimedOut(limit=0.5)
    assert "ptrace is forbidden" in (outcome.debugger_problem or "")
    assert outcome.debugger_output.startswith("=== tasks")


def test_ptrace_that_the_host_forbids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = tmp_path / "ptrace_scope"
    scope.write_text("3\n")
    monkeypatch.setattr(gdb, "_YAMA", scope)
    with runner_with(tmp_path, ANSWERING) as runner:
        problem = runner.run(request("segv")).debugger_problem or ""
    assert "ptrace_scope = 3" in problem


def test_py_spy_where_there_is_no_gdb(tmp_path: Path) -> None:
    with runner_with(tmp_path, None) as runner:
        spy = tmp_path / "bin" / "py-spy"
        spy.write_text('#!/bin/sh\necho "$@"\n')
        spy.chmod(0o755)
        outcome = runner.run(request("hang", timeout=0.5, debugger=False, stacks=True))
    assert "=== py-spy\ndump --native --pid " in outcome.debugger_output
    assert outcome.debugger_problem is None


@needs_gdb
def test_an_interrupt_ends_child_and_debugger(runner: Runner, tmp_base: Path) -> None:
    seen: list[str] = []

    def interrupt() -> None:
        seen.extend(processes_in(tmp_base))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(1.5, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        runner.run(request("hang_native"))
    assert any("gdb -nx" in line for line in seen), seen
    assert soon(lambda: processes_in(tmp_base) == [])
    assert isinstance(runner.run(request("exit_zero", debugger=False)).ending, Exited)


@needs_gdb
def test_the_debugger_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import os\nfrom aotidoctor.runner.runner import Runner\nfrom aotidoctor.model.jobs import Script\nfrom aotidoctor.model.run import Request\n"
        f"Runner(environ=os.environ).run(Request(probe='x', job='script', payload=Script(path={str(FAULTS / 'hang_native.py')!r}),"
        " fresh=True, debugger=True))"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(FAULTS.parents[1])}
    parent = subprocess.Popen([sys.executable, "-c", program], env=environ)
    try:
        assert soon(lambda: any("gdb -nx" in line for line in processes_in(tmp_path)))
    finally:
        parent.kill()
        parent.wait()
    assert soon(lambda: processes_in(tmp_path) == [])


@needs_gdb
def test_a_debugger_that_is_killed_lets_the_child_go(runner: Runner, tmp_path: Path) -> None:
    started = runner.start(request("slow"))
    assert not isinstance(started, Outcome)
    started.native.close()
    outcome = runner.finish(started)
    assert outcome.ending == Exited(code=0, done=True)


def test_a_gdb_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(GdbError, match="could not be started"):
        Gdb(str(tmp_path / "none"), token="x", directory=tmp_path)


@pytest.mark.parametrize(
    ("stack", "read", "missing"),
    [
        ("#0  0x1 in ?? () from /a.so\n#1  0x2 in ?? () from /b.so\n", (), "/a.so"),
        ("#0  0x1 in ?? () from /a.so\n#1  0x2 in ?? () from /b.so\n", ("/a.so",), "/b.so"),
        ("#0  0x1 in f () from /a.so\n#1  0x2 in ?? ()\n#2  0x3 in ?? () from /b.so\n", (), None),
        (
            "#0  0x1 in torch::aot_inductor::AOTInductorModel::run_impl () at w.cpp:1\n#1  0x2 in ?? () from /b.so\n",
            (),
            None,
        ),
        ("#0  0x1 in f (...) at a.c:1\n", (), None),
    ],
)
def test_which_library_is_read_next(stack: str, read: tuple[str, ...], missing: str | None) -> None:
    assert _missing(stack, read) == missing


class Names:
    """A gdb that knows some names."""

    KNOWN: ClassVar = {"_Z1fi": "f(int)", "_Z1fi.cold": "f(int) [clone .cold]", "_Z1gv": "g() const\\1"}

    def ask(self, command: str, seconds: float | None) -> str:
        name = command.rpartition(" ")[2]
        return self.KNOWN.get(name, "Can't demangle") + "\n"


def test_names_that_were_read_as_they_are_in_the_tables() -> None:
    stack = "".join(
        f"#{n}  0x1 in {name} () from /_Z1fi.so\n" for n, name in enumerate(["_Z1fi", "_Z1fi.cold", "_Z1gv", "_Zx"])
    )
    assert [line.split(" in ")[1] for line in _demangle_stack(Names(), stack, time.monotonic() + 9).splitlines()] == [
        "f(int) () from /_Z1fi.so",
        "f(int) [clone .cold] () from /_Z1fi.so",
        "g() const\\1 () from /_Z1fi.so",
        "_Zx () from /_Z1fi.so",
    ]
