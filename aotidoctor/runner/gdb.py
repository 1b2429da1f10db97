"""One session with gdb over its standard streams: a command in, its text out, each within a time limit.

The commands are typed, not given as arguments, because which libraries need their symbols is only known at the stop:
with all of them read up front a stop costs many times as much. No script inside gdb: it may be built without Python.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from aotidoctor.model.child_protocol import MARKER

INSTALL = "gdb is not installed; apt-get install gdb"
ATTACH_S = 15.0
LAST_WORDS_S = 1.0
MAX_ANSWER = 512 * 1024
# No start-up files, no symbols before they are asked for, nothing fetched from a network, frames in one form.
SETTINGS = (
    "set pagination off",
    "set width 0",
    "set confirm off",
    "set auto-solib-add off",
    "set debuginfod enabled off",
    "set print frame-arguments presence",
    "set print frame-info location-and-address",
    "set print thread-events off",
    "set print inferior-events off",
    "handle all nostop noprint pass",
    "handle SIGSEGV SIGBUS SIGILL SIGFPE SIGABRT SIGSYS stop print pass",
    "handle SIGINT stop print nopass",
)
_DENIED = re.compile(r"ptrace: (?:Operation not permitted|Permission denied)")
_THREAD = re.compile(r"^\*? *1 +\S", re.MULTILINE)
_LOOK_EVERY = 0.05
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


class GdbError(Exception):
    """There is no (more) answer from gdb; the text says why."""


class Gdb:
    """A running gdb. ``token`` marks it, so that it is found with all else that a run leaves.

    Raises:
        GdbError: it could not be started.
    """

    def __init__(self, program: str, *, token: str, directory: Path) -> None:
        self._count = 0
        self._buffer = b""
        # What the user's environment preloads into programs, or asks of debuggers, is not for this one.
        environ = {"PATH": str(Path(program).parent), "LC_ALL": "C", MARKER: token}
        self._process = _start(program, environ, directory)

    def settle(self, deadline: float) -> None:
        """Make the settings, by ``deadline``.

        Raises:
            GdbError: it ended, or took too long.
        """
        for setting in SETTINGS:
            self.ask(setting, deadline - time.monotonic())

    def attach(self, pid: int) -> None:
        """Take hold of process ``pid``, which stops.

        Raises:
            GdbError: it may not, or cannot.
        """
        deadline = time.monotonic() + ATTACH_S
        self.settle(deadline)
        said = self.ask(f"attach {pid}", deadline - time.monotonic())
        if _THREAD.search(self.ask("info threads", deadline - time.monotonic())) is None:
            raise GdbError(_denied(said) or f"gdb could not attach: {last_line(said)}")

    def ask(self, command: str, seconds: float | None, *, meanwhile: Callable[[], None] | None = None) -> str:
        """What gdb prints for ``command``. ``meanwhile`` is called some times a second while it works.

        Raises:
            GdbError: gdb has ended, or took longer than ``seconds`` (None: as long as it takes).
        """
        self._count += 1
        end = f"@@{self._count}@@"
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            _pipe(self._process.stdin).write(f"{command}\necho \\n{end}\\n\n".encode())
        except (OSError, ValueError):
            # It has ended; what it said before that tells why.
            deadline = time.monotonic() + LAST_WORDS_S
        return self._until(f"\n{end}\n".encode(), deadline, command, meanwhile)

    def close(self) -> None:
        """End it. A process that it still holds goes on."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                _pipe(pipe).close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.3)
        self.kill()

    def kill(self) -> None:
        """Kill it; another thread that waits for an answer then gets its error."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)

    def _until(self, end: bytes, deadline: float | None, command: str, meanwhile: Callable[[], None] | None) -> str:
        while end not in self._buffer:
            if deadline is not None and time.monotonic() >= deadline:
                raise GdbError(f"gdb did not answer in time ({command})")
            if meanwhile is not None:
                meanwhile()
            self._read()
        answer, _, self._buffer = self._buffer.partition(end)
        return answer.decode("utf-8", "replace")

    def _read(self) -> None:
        out = _pipe(self._process.stdout)
        try:
            if not select.select([out], [], [], _LOOK_EVERY)[0]:
                return
            data = os.read(out.fileno(), 1 << 16)
        except (OSError, ValueError) as error:
            raise GdbError("gdb was ended") from error
        if not data:
            raise GdbError(f"gdb ended: {last_line(self._buffer.decode('utf-8', 'replace'))}")
        self._buffer += data
        if len(self._buffer) > 2 * MAX_ANSWER:
            # The end of an answer is what is waited for; the middle of a huge one is what can be spared.
            self._buffer = self._buffer[:MAX_ANSWER] + self._buffer[-MAX_ANSWER // 2 :]


def start_gdb(path: str, *, token: str, directory: Path) -> Gdb:
    """A session with the gdb of a user's PATH.

    Raises:
        GdbError: there is none, or it could not be started.
    """
    program = shutil.which("gdb", path=path)
    if program is None:
        raise GdbError(INSTALL)
    return Gdb(os.path.abspath(program), token=token, directory=directory)  # noqa: PTH100 - of a user's PATH


def last_line(text: str) -> str:
    """The last line with something on it, cut to a readable length."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it printed nothing"


def _start(program: str, environ: dict[str, str], directory: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - an argument vector, no shell
            (program, "-nx", "-q", "-iex", "set prompt", "-iex", "set auto-load no"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd=directory,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise GdbError(f"gdb could not be started: {error}") from error


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise GdbError("gdb has no such stream")
    return stream


def _denied(said: str) -> str | None:
    """Why the kernel does not let gdb near the process; None when it did not say so."""
    if _DENIED.search(said) is None:
        return None
    try:
        scope = _YAMA.read_text(encoding="ascii").strip()
    except OSError:
        scope = "0"
    if scope not in ("0", "1"):
        remedy = "sysctl -w kernel.yama.ptrace_scope=1"
        return f"ptrace is forbidden on this host (kernel.yama.ptrace_scope = {scope}; {remedy})"
    return "ptrace is forbidden here, mostly by a container (docker run --cap-add=SYS_PTRACE)"
