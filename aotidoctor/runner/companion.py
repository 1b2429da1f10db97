"""A second process of aotidoctor itself: it keeps the tool warm, and what kills it leaves this one alone.

It finds ``aotidoctor`` where this process has it, and nothing in the caller's directory. It ends when its link does.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_ROOT = str(Path(__file__).absolute().parent.parent.parent)
_BOOT = (
    "import sys; sys.path[0] = sys.argv[1]; from importlib import import_module;"
    " import_module(sys.argv[2]).main(int(sys.argv[3]))"
)
_TAIL = 2000
_REAP_S = 5.0


@dataclass(slots=True, kw_only=True)
class Companion:
    """The process and our end of its link."""

    process: subprocess.Popen[bytes]
    link: socket.socket
    stderr: IO[bytes]

    @property
    def pid(self) -> int:
        """Process number, which nobody else has until ``end``."""
        return self.process.pid

    def resident(self) -> int:
        """Bytes of memory that it has and that are not a file's; 0 where the system does not say."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_bytes().split()
            return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGESIZE")
        except (OSError, IndexError, ValueError):
            return 0

    def end(self, *, wait: float = 0.0) -> tuple[int | None, str]:
        """Kill it with its process group, after ``wait`` seconds in which it may end by itself.

        Its exit status as ``Popen.returncode`` gives it (None where nothing could kill it), and the end of its stderr.
        """
        self.link.close()
        with suppress(subprocess.TimeoutExpired):
            if wait:
                self.process.wait(wait)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_REAP_S)
        with self.stderr as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL))
            text = stream.read().decode("utf-8", "replace")
        return self.process.returncode, text


def ended_by_itself(companion: Companion, seconds: float) -> int | None:
    """The exit status of one that is ending, after at most ``seconds``; None where it goes on."""
    deadline = time.monotonic() + seconds
    while companion.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return companion.process.returncode


def start_companion(module: str, environ: Mapping[str, str], *, python: str = sys.executable) -> Companion:
    """Start ``module``'s ``main`` with the descriptor of its end of the link. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
    try:
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - an argument vector, no shell
                (python, "-c", _BOOT, _ROOT, module, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=dict(environ),
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
    except OSError:
        ours.close()
        stderr.close()
        raise
    return Companion(process=process, link=ours, stderr=stderr)
