"""The debugger of a run: watches the child from before its work until it dies, or looks at one that hangs.

A thread of ours talks with gdb, so that the time limit, the sizes of the output and an interrupt are looked after all
the while. The child waits for the debugger before its work begins (``worker.attach``): it writes the file ``attach``
and goes on when it is being traced, or when the file ``no_debugger`` says that it will not be.

A child that dies is held at its signal while the stack is read, then let go: it ends as it would have. gdb carries the
run's marker and is killed with whatever else the run left; what it held is then free to end.
"""

from __future__ import annotations

import re
import shutil
import signal
import threading
from contextlib import closing, suppress

from aotidoctor.runner.gdb import INSTALL, MAX_ANSWER, Gdb, GdbError, start_gdb
from aotidoctor.runner.places import RunDir
from aotidoctor.runner.process import send
from aotidoctor.runner.stacks import COLLECT_S, all_stacks, one_stack, sections
from aotidoctor.runner.tool_files import ask_tool

_STOPPED = re.compile(r"received signal (SIG\w+)")
_LOOK_EVERY = 0.01
_PY_SPY_S = 20.0


class Debugger:
    """Watches the child of ``run_dir``; ``output`` and ``problem`` hold what came of it after ``finish``."""

    def __init__(self, run_dir: RunDir, path: str) -> None:
        self.output = ""
        self.problem: str | None = None
        self.holds = threading.Event()
        self._run_dir = run_dir
        self._path = path
        self._gdb: Gdb | None = None
        self._stacks_wanted = threading.Event()
        self._interrupted = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="debugger")
        self._thread.start()

    def stacks(self) -> None:
        """Stop the child and take the stacks of all its threads."""
        self._stacks_wanted.set()
        self._thread.join(COLLECT_S)

    def finish(self) -> None:
        """After the child's end, or its time limit: wait for the last words, a moment, then end gdb."""
        self._thread.join(2.0)
        self.close()

    def close(self) -> None:
        """End gdb at once, wherever it is."""
        self._closed.set()
        if self._gdb is not None:
            self._gdb.kill()
        self._thread.join(3.0)

    def _watch(self) -> None:
        try:
            pid = self._wait_for_child()
            if pid is not None:
                self._gdb = start_gdb(self._path, token=self._run_dir.token, directory=self._run_dir.path)
                self._gdb.attach(pid)
                self._follow(self._gdb, pid)
        except GdbError as error:
            self.problem = None if self._closed.is_set() else str(error)
        finally:
            with suppress(OSError):
                self._run_dir.file("no_debugger").touch()
            if self._gdb is not None:
                self._gdb.close()

    def _wait_for_child(self) -> int | None:
        while not self._closed.wait(_LOOK_EVERY):
            with suppress(OSError, ValueError):
                return int(self._run_dir.file("attach").read_text(encoding="ascii"))
        return None

    def _follow(self, gdb: Gdb, pid: int) -> None:
        said = gdb.ask("continue", None, meanwhile=lambda: self._interrupt(pid))
        stopped = _STOPPED.search(said)
        if stopped is None:
            self.output = sections({"end": said})
            return
        self.holds.set()
        asked = stopped[1] == "SIGINT" and self._interrupted
        self.output = all_stacks(gdb, pid) if asked else one_stack(gdb, pid, said)
        gdb.ask("detach", 5.0)

    def _interrupt(self, pid: int) -> None:
        if self._stacks_wanted.is_set() and not self._interrupted:
            self._interrupted = True
            send(pid, signal.SIGINT)


def hang_stacks(run_dir: RunDir, pid: int, path: str) -> tuple[str, str | None]:
    """Output and problem of a look at a process that does not end, by gdb, or by py-spy where there is no gdb."""
    if shutil.which("gdb", path=path) is None and (py_spy := shutil.which("py-spy", path=path)):
        return _py_spy(py_spy, pid, run_dir)
    try:
        with closing(start_gdb(path, token=run_dir.token, directory=run_dir.path)) as gdb:
            gdb.attach(pid)
            stacks = all_stacks(gdb, pid)
            gdb.ask("detach", 5.0)
            return stacks, None
    except GdbError as error:
        return "", str(error)


def _py_spy(program: str, pid: int, run_dir: RunDir) -> tuple[str, str | None]:
    done = ask_tool((program, "dump", "--native", "--pid", str(pid)), run_dir, _PY_SPY_S)
    if isinstance(done, str):
        return "", done
    text = done.stdout[:MAX_ANSWER].decode("utf-8", "replace")
    if done.returncode != 0:
        return "", f"py-spy: {done.stderr.decode('utf-8', 'replace').strip()[-200:]}; {INSTALL}"
    return sections({"py-spy": text}), None
