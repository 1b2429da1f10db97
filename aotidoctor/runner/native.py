"""Native stacks of one run: when a debugger is asked, for how long it is waited for, and what is kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aotidoctor.model.run import Request
from aotidoctor.runner.places import RunDir
from aotidoctor.runner.process import Watch
from aotidoctor.runner.tasks import process_of, task_section

if TYPE_CHECKING:
    from aotidoctor.runner.debugger import Debugger

MAX_OUTPUT = 256 * 1024
# Longer than reading a stack may take: until then a child that died within its time is held by the debugger.
_LAST_WORDS_S = 45.0


class Native:
    """``output`` and ``problem`` are what an ``Outcome`` says of the debugger."""

    def __init__(self, request: Request, run_dir: RunDir, path: str | None) -> None:
        self._wanted = request.debugger or request.stacks
        self._gpu_core = request.gpu_core
        self._run_dir = run_dir
        self._path = path or os.defpath
        self._debugger: Debugger | None = None
        self._output = ""
        self._core = ""
        self._problem: str | None = None
        if request.debugger:
            # Sessions with gdb need modules that other runs should not pay for.
            from aotidoctor.runner.debugger import Debugger  # noqa: PLC0415

            self._debugger = Debugger(run_dir, self._path)

    @property
    def output(self) -> str:
        """All sections, cut to a size that a report can hold."""
        told = self._debugger.output if self._debugger is not None else self._core
        return (self._output + told)[:MAX_OUTPUT]

    @property
    def problem(self) -> str | None:
        """Why there was no debugger, None when there was one or none was asked for."""
        return self._debugger.problem if self._debugger is not None else self._problem

    def was_dying(self, watch: Watch) -> bool:
        """At the time limit: True when the child had been stopped by its own signal before, and is dead now."""
        return self._debugger is not None and self._debugger.holds.is_set() and watch.wait(_LAST_WORDS_S)

    def look(self, leader: int) -> None:
        """At the time limit: where it is. /proc first, since a debugger may wake up what sleeps."""
        pid = process_of(self._run_dir, leader)
        self._output = task_section(pid)
        if self._debugger is not None and self._debugger.problem is None:
            self._debugger.stacks()
        elif self._wanted and self._debugger is None:
            from aotidoctor.runner.debugger import hang_stacks  # noqa: PLC0415 - see above

            stacks, self._problem = hang_stacks(self._run_dir, pid, self._path)
            self._output += stacks

    def finish(self) -> None:
        """After the child's end: wait a moment for the debugger's last words."""
        if self._debugger is not None:
            self._debugger.finish()
        if self._gpu_core:
            from aotidoctor.runner.gpu_core import read_gpu_core  # noqa: PLC0415 - see above

            self._core, self._problem = read_gpu_core(self._run_dir, self._path)

    def close(self) -> None:
        """End the debugger at once: what it still holds cannot be waited for by anybody else."""
        if self._debugger is not None:
            self._debugger.close()
