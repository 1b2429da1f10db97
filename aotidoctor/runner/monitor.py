"""Start a process that looks after this one and outlives it, and that is no child of it.

A program may wait for whatever child ends first, and would meet one that it never started: a shell in between makes
the new process nobody's. It gets one end of a line to us as its stdin, our standard error, and nothing else.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_SHELL = "/bin/sh"
_ROOT = str(Path(__file__).absolute().parent.parent.parent)
_START = "import json,os,sys;sys.path[:]=json.loads(sys.argv[1]);from aotidoctor.cli.guard_monitor import main;main()"
FD = 0


class Monitor:
    """Our end of the line to it. Raises OSError where it cannot be started."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                path = json.dumps([_ROOT, *(entry for entry in sys.path if entry)])
                _start((sys.executable, "-c", _START, path), theirs.fileno())
            except (OSError, subprocess.SubprocessError):
                self._line.close()
                raise

    def tell(self, message: dict[str, object]) -> None:
        """Send it one message. Raises OSError when it has gone."""
        # A program may have a broken pipe end it; this line is none of its pipes.
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            data = data[self._line.send(data, socket.MSG_NOSIGNAL) :]

    def wait(self, seconds: float) -> None:
        """Wait until it has done what it was told, or has gone."""
        self._line.settimeout(seconds)
        with suppress(OSError):
            self._line.recv(1)

    def close(self) -> None:
        """Send nothing more."""
        self._line.close()


def _start(command: tuple[str, ...], line: int) -> None:
    if os.access(_SHELL, os.X_OK):
        # What a shell starts in the background reads from nowhere, unless it is told where from.
        command = (_SHELL, "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh", *command)
    process = subprocess.Popen(  # noqa: S603 - an argument vector; the shell's script is ours and fixed
        command,
        stdin=line,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    if command[0] == _SHELL:
        process.wait(10.0)
