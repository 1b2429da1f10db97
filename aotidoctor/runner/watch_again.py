"""Run a watched program again, apart from the user: no input, output not shown, a time limit, its own session.

With a debugger the new process waits for it before the program is executed, so that environment, folder and arguments
are the program's own. Whatever it leaves running is ended. Loaded for ``watch --rerun`` only.
"""

from __future__ import annotations

import getpass
import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.run import DEFAULT_TMP, RUN_VARIABLE, ProgramToWatch, Signalled, WatchedProgram
from aotidoctor.runner.child_ending import ProcessWatch as Ends
from aotidoctor.runner.child_ending import kill_all
from aotidoctor.runner.gdb import Debugger, hang_stacks
from aotidoctor.runner.processes import ProcessObserver, first_increase, oom_kills, read_proc_text
from aotidoctor.runner.run_dir import RunDir, lone_run_dir, task_section
from aotidoctor.runner.supervise import MAX_OUTPUT
from aotidoctor.runner.watch import ExecError, HeldSignals, ProgramEnd, not_started, program_ending, start_program
from aotidoctor.runner.watch_streams import make_captures

# Reading a stack may take longer than the program's own time.
_HELD_S = 60.0
_ATTACH_S = 30.0


def watch_again(program: ProgramToWatch, environ: Mapping[str, str], *, debugger: bool = False) -> WatchedProgram:
    """Run the program with the changes of ``program.env`` and within ``program.limit``. Raises OSError."""
    with lone_run_dir(environ, {**environ, **program.env}.get("TMPDIR")) as run_dir:
        return _run(program, environ, run_dir, debugger=debugger)


def _run(program: ProgramToWatch, environ: Mapping[str, str], run_dir: RunDir, *, debugger: bool) -> WatchedProgram:
    began, started, before = time.monotonic(), time.time(), oom_kills()
    ways = make_captures()
    signals = HeldSignals(mask=frozenset(), relayed=frozenset(), children_ignored=False)
    # What it unpacks there goes with the run.
    marked = {**_compile_cache(environ), **environ, RUN_VARIABLE: run_dir.token, "TMPDIR": run_dir.tmp}
    gdb = Debugger(run_dir, environ.get("PATH") or os.defpath) if debugger else None
    try:
        pid = start_program(program, ways, signals, marked, before=lambda: _apart(run_dir, debugger=debugger))
    except (ExecError, OSError) as error:
        if gdb is not None:
            gdb.close()
        return not_started(program, error, started)
    observer = ProcessObserver(pid, run_dir.tmp)
    ends = Ends(pid)
    end = ProgramEnd(None)
    output, problem = "", None
    try:
        observer.start()
        for way in ways:
            way.start()
        ended = ends.wait(program.limit or 3600.0)
        if not ended and gdb is not None and gdb.holds.is_set():
            ended = ends.wait(_HELD_S)
        over = None if ended else program.limit
        if over is not None:
            output, problem = _standing(pid, observer, gdb, run_dir, environ)
        if gdb is not None:
            gdb.finish()
        seen = observer.finish()
    finally:
        kill_all(pid, run_dir.token)
        if gdb is not None:
            gdb.close()
        ends.wait(10.0)
        ends.close()
        with suppress(ChildProcessError):
            ended_pid, status, usage = os.wait4(pid, os.WNOHANG)
            if ended_pid:
                end.status, end.peak_rss = status, usage.ru_maxrss * 1024
    for way in ways:
        way.finish()
    ending = program_ending(end, over, first_increase(before, oom_kills()))
    if gdb is not None and isinstance(ending, Signalled):
        output, problem = gdb.output, gdb.problem
    return WatchedProgram(
        argv=program.argv,
        ending=ending,
        status=end.status,
        pid=pid,
        seconds=time.monotonic() - began,
        started=started,
        peak_rss=end.peak_rss,
        streams=tuple(replace(way.stream(), problem=None) for way in ways),
        seen=seen,
        debugger_output=output[:MAX_OUTPUT],
        debugger_problem=problem or (gdb.problem if gdb is not None else None),
    )


def _compile_cache(environ: Mapping[str, str]) -> dict[str, str]:
    """The program's own compile cache, where it has one in its TMPDIR.

    In an empty one PyTorch compiles again, at each load, what it needs for the CPU: seconds that are not the program's.
    """
    with suppress(KeyError, OSError):
        folder = Path(environ.get("TMPDIR") or DEFAULT_TMP, f"torchinductor_{getpass.getuser()}")
        if folder.is_dir() and os.access(folder, os.W_OK):
            return {"TORCHINDUCTOR_CACHE_DIR": str(folder)}
    return {}


def _apart(run_dir: RunDir, *, debugger: bool) -> None:
    """Leave the user's session, in the new process, and wait for the debugger."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0, inheritable=True)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if not debugger:
        return
    run_dir.file("attach").write_text(str(os.getpid()), encoding="ascii")
    deadline = time.monotonic() + _ATTACH_S
    while time.monotonic() < deadline and not run_dir.file("no_debugger").exists():
        if not re.search(r"^TracerPid:\s*0$", read_proc_text("/proc/self/status"), re.MULTILINE):
            return
        time.sleep(0.01)


def _standing(
    pid: int, observer: ProcessObserver, gdb: Debugger | None, run_dir: RunDir, environ: Mapping[str, str]
) -> tuple[str, str | None]:
    """The stacks of the program when its time is up, and a problem."""
    target = observer.facts_so_far().holder or pid
    text = task_section(target)
    if gdb is not None and gdb.problem is None and target == pid:
        gdb.stacks()
        return text + gdb.output, gdb.problem
    stacks, problem = hang_stacks(run_dir, target, environ.get("PATH") or os.defpath)
    return text + stacks, problem
