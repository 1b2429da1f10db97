"""Start helper processes: a monitor that survives this one, a warm companion, the user's notify command.

The monitor is no child of this process: a program may wait for whatever child ends first, and would meet one that it
never started, so a shell in between makes the new process nobody's. It gets one end of a line to us as its stdin, our
standard error, and nothing else.

The companion is a second process of aotidoctor itself; what kills it leaves this one alone. It finds ``aotidoctor``
where this process has it, and nothing in the caller's directory. It ends when its link does.

``pack_npm`` fetches a package of npm, for the page in the browser. ``notify`` calls a command of the user's when
something new appears, with a document on its standard input.

``guard`` loads this module in the user's program: nothing but the standard library is imported.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# The monitor.
_SHELL = "/bin/sh"
_ROOT = str(Path(__file__).absolute().parent.parent.parent)
_START_MONITOR = (
    "import json,os,sys;sys.path[:]=json.loads(sys.argv[1]);from aotidoctor.cli.guard_monitor import main;main()"
)
MONITOR_FD = 0


class Monitor:
    """Our end of the line to the monitor. Raises OSError where it cannot be started."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                path = json.dumps([_ROOT, *(entry for entry in sys.path if entry)])
                command: tuple[str, ...] = (sys.executable, "-c", _START_MONITOR, path)
                by_shell = os.access(_SHELL, os.X_OK)
                if by_shell:
                    # What a shell starts in the background reads from nowhere, unless its input is redirected.
                    command = (_SHELL, "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh", *command)
                process = subprocess.Popen(
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True, cwd="/"
                )
                if by_shell:
                    process.wait(10.0)
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
        """Wait until it has carried out the messages, or has gone."""
        self._line.settimeout(seconds)
        with suppress(OSError):
            self._line.recv(1)

    def close(self) -> None:
        """Send nothing more."""
        self._line.close()


# The companion.
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
        """Bytes of its memory that are not a file's; 0 where the system does not say."""
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


def exit_status_within(companion: Companion, seconds: float) -> int | None:
    """The exit status of one that is ending, after at most ``seconds``; None where it goes on."""
    with suppress(subprocess.TimeoutExpired):
        companion.process.wait(seconds)
    return companion.process.returncode


def start_companion(module: str, environ: Mapping[str, str], *, python: str = sys.executable) -> Companion:
    """Start ``module``'s ``main`` with the descriptor of its end of the link. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
    try:
        with theirs:
            process = subprocess.Popen(
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


# The user's command.
NOTIFY_LIMIT_S = 60.0


def notify(argv: Sequence[str], document: bytes, environ: Mapping[str, str], *, limit: float = NOTIFY_LIMIT_S) -> str:
    """Run ``argv`` with ``document`` as its input; why it failed, empty where it did not.

    What it prints goes to stderr, since stdout is for the result. After ``limit`` seconds its process group is killed.
    """
    try:
        child = subprocess.Popen(
            [*argv], stdin=subprocess.PIPE, stdout=2, env={**environ}, start_new_session=True, close_fds=True
        )
    except (OSError, ValueError) as error:
        return str(getattr(error, "strerror", None) or error)
    try:
        child.communicate(document, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"did not finish within {limit:g} s"
    finally:
        if child.returncode is None:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                child.wait(_REAP_S)
    return f"exit status {child.returncode}" if child.returncode else ""


# Files that are fetched once.
_NPM_S = 300.0


def pack_npm(package: str, folder: str) -> None:
    """Put the archive of ``package`` (``name@version``) into ``folder``. Raises OSError with what npm printed."""
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is needed once, to fetch it: https://nodejs.org")
    command = [npm, "pack", "--silent", package, "--pack-destination", folder]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_NPM_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"npm took more than {_NPM_S:.0f} s") from error
    except subprocess.CalledProcessError as error:
        raise OSError(f"npm: {error.stderr.decode(errors='replace').strip()[-300:]}") from error
