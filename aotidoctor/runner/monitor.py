"""Start a process that looks after this one and outlives it, and that is no child of it.

A program may wait for whatever child ends first, and would meet one that it never started: a shell in between makes
the new process nobody's. It gets the reading end of a pipe as its descriptor 3, our standard error, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_SHELL = "/bin/sh"
_ROOT = str(Path(__file__).absolute().parent.parent.parent)
_START = "import json,os,sys;sys.path[:]=json.loads(sys.argv[1]);from aotidoctor.cli.guard_monitor import main;main()"
FD = 3


class Monitor:
    """Our end of the pipe to it. Raises OSError where it cannot be started."""

    def __init__(self) -> None:
        theirs, self._pipe = os.pipe()
        try:
            path = json.dumps([_ROOT, *(entry for entry in sys.path if entry)])
            _start((sys.executable, "-c", _START, path), theirs)
        except (OSError, subprocess.SubprocessError):
            os.close(self._pipe)
            raise
        finally:
            os.close(theirs)

    def tell(self, message: dict[str, object]) -> None:
        """Send it one message."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._pipe, data) :]

    def close(self) -> None:
        """Send nothing more."""
        with suppress(OSError):
            os.close(self._pipe)


def _start(command: tuple[str, ...], pipe: int) -> None:
    if os.access(_SHELL, os.X_OK):
        # What a shell starts in the background reads from nowhere, unless it is told where from.
        command = (_SHELL, "-c", f'"$@" {FD}<&{pipe} {pipe}<&- &' if pipe != FD else '"$@" &', "sh", *command)
    process = subprocess.Popen(  # noqa: S603 - an argument vector; the shell's script is ours and fixed
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(pipe,),
        start_new_session=True,
        cwd="/",
    )
    if command[0] == _SHELL:
        process.wait(10.0)
