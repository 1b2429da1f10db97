"""The core file of a program that died, or why there is none."""

from __future__ import annotations

import glob
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.model.run import Signalled
from aotidoctor.model.watched import Watched
from aotidoctor.runner.core_pattern import APPORT, FILE, NONE, SYSTEMD, CorePattern, glob_of, read_core_pattern
from aotidoctor.runner.proc_files import read_text

NO_LIMIT = "the limit of core files is 0: ulimit -c unlimited, or watch --core"
_PATTERN, _USES_PID = "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/core_uses_pid"
_ASK_S = 60.0
# systemd writes the core after the program has gone.
_WRITING_S = 20.0


@record
class Core:
    """``path`` is the file, ``why`` says why there is none. A ``made`` file is a copy of ours."""

    path: str | None = None
    why: str = ""
    made: bool = False


def find_core(watched: Watched, environ: Mapping[str, str], *, room: str) -> Core:
    """The core of the watched program; ``room`` is a folder for a copy of it."""
    if not isinstance(watched.ending, Signalled):
        return Core(why="it was not ended by a signal")
    pattern = read_core_pattern(read_text(_PATTERN), read_text(_USES_PID))
    if not watched.ending.core_dumped:
        return Core(why=_why_none(watched, pattern))
    if pattern.kind == FILE:
        return _file(watched, pattern)
    if pattern.kind == SYSTEMD:
        return _from_systemd(watched, environ, room)
    taken = f"{pattern.text} takes core files here"
    if pattern.kind == APPORT:
        taken = "apport takes core files here (/var/crash, only for packages of the distribution)"
    return Core(why=f"{taken}; sysctl -w kernel.core_pattern=core.%p")


def _why_none(watched: Watched, pattern: CorePattern) -> str:
    limit = watched.seen.core_limit or str(resource.getrlimit(resource.RLIMIT_CORE)[0])
    if isinstance(watched.ending, Signalled) and watched.ending.name in _WITHOUT_CORE:
        return f"{watched.ending.name} leaves none"
    if pattern.kind == NONE:
        return "core files are disabled here: sysctl -w kernel.core_pattern=core.%p"
    if limit == "0":
        return NO_LIMIT
    return "the kernel wrote none: no space or no permission to write, or the program forbids it (PR_SET_DUMPABLE)"


_WITHOUT_CORE = frozenset({"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2"})


def _file(watched: Watched, pattern: CorePattern) -> Core:
    cwd = watched.seen.cwd or os.getcwd()  # noqa: PTH109 - a folder that has gone raises nothing here
    facts = {"p": str(watched.pid), "P": str(watched.pid), "u": str(os.getuid()), "g": str(os.getgid())}
    facts |= {"h": os.uname().nodename, "s": str(watched.status & 0x7F if watched.status is not None else "")}
    made = [path for path in glob.glob(glob_of(pattern, facts, cwd)) if _is_new(path, watched)]  # noqa: PTH207
    if not made:
        return Core(why=f"the kernel wrote one, but not where {pattern.text or 'core.PID'} says, relative to {cwd}")
    return Core(path=max(made, key=os.path.getmtime))


def _is_new(path: str, watched: Watched) -> bool:
    try:
        return Path(path).stat().st_mtime >= watched.started - 1 and Path(path).is_file()
    except OSError:
        return False


def _from_systemd(watched: Watched, environ: Mapping[str, str], room: str) -> Core:
    program = shutil.which("coredumpctl", path=environ.get("PATH") or os.defpath)
    if program is None:
        return Core(
            why="systemd keeps core files here, and coredumpctl is not installed; apt-get install systemd-coredump"
        )
    target = f"{room}/core"
    said, deadline = "", time.monotonic() + _WRITING_S
    while True:
        try:
            done = subprocess.run(  # noqa: S603 - an argument vector, no shell
                (program, "--quiet", "--output", target, "dump", f"COREDUMP_PID={watched.pid}"),
                capture_output=True,
                timeout=_ASK_S,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Core(why=f"coredumpctl printed nothing: {type(error).__name__}")
        if done.returncode == 0 and Path(target).is_file():
            return Core(path=target, made=True)
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        if ("No coredumps found" not in said and "not yet" not in said) or time.monotonic() >= deadline:
            return Core(why=f"coredumpctl: {said or 'no core file is kept'}")
        time.sleep(0.5)


def autopsy(watched: Watched, environ: Mapping[str, str], room: str) -> Watched:
    """The watched program with its core file, and what gdb reads in it."""
    core = find_core(watched, environ, room=room)
    if core.path is None:
        return replace(watched, no_core=core.why)
    from aotidoctor.runner.watch_stacks import of_core  # noqa: PLC0415 - for a core only

    output, problem = of_core(core.path, watched.seen.exe, environ)
    return replace(watched, core=None if core.made else core.path, debugger_output=output, debugger_problem=problem)
