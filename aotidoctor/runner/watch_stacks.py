"""Native stacks of a watched program: of one that does not end, and of a core file."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from aotidoctor.runner.core_maps import maps_of_core
from aotidoctor.runner.debugger import hang_stacks
from aotidoctor.runner.gdb import Gdb, GdbError, start_gdb
from aotidoctor.runner.places import lone_run_dir
from aotidoctor.runner.stacks import COLLECT_S, one_stack
from aotidoctor.runner.tasks import task_section

_OPEN_S = 60.0
# Nothing looks for this one: it is ended where it is used.
_MARK = "watch"


def standing(pid: int, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """Where the process stands: what /proc says of its threads, then their stacks. And why there are no stacks."""
    text = task_section(pid)
    try:
        with lone_run_dir(environ, environ.get("TMPDIR")) as run_dir:
            stacks, problem = hang_stacks(run_dir, pid, environ.get("PATH") or os.defpath)
    except OSError as error:
        return text, str(error)
    return text + stacks, problem


def of_core(core: str, program: str | None, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """The sections that ``Outcome.debugger_output`` has for a crash, from a core file; or why there are none."""
    path = environ.get("PATH") or os.defpath
    try:
        with closing(start_gdb(path, token=_MARK, directory=Path("/"))) as gdb:
            return _read(gdb, core, program), None
    except GdbError as error:
        return "", str(error)


def _read(gdb: Gdb, core: str, program: str | None) -> str:
    deadline = time.monotonic() + COLLECT_S
    gdb.settle(deadline)
    if program is not None:
        gdb.ask(f"file {_quoted(program)}", _OPEN_S)
    # Unlike a program, a core file is the rest of the line, as it is.
    said = gdb.ask(f"core-file {core}", _OPEN_S)
    # In a core file the signal is past; the reading of stacks knows one wording.
    stop = said.replace("Program terminated with signal", "Program received signal")
    if "received signal" not in stop:
        raise GdbError(f"gdb cannot read the core file: {said.strip()[-200:]}")
    return one_stack(gdb, None, stop, maps=maps_of_core(core))


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
