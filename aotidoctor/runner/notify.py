"""A command of the user's that is called when something new appears, with a document on its standard input."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

LIMIT_S = 60.0


def notify(argv: Sequence[str], document: bytes, environ: Mapping[str, str], *, limit: float = LIMIT_S) -> str:
    """Run ``argv`` with ``document`` as its input; why it failed, empty where it did not.

    What it prints goes to stderr, since stdout is for the result. After ``limit`` seconds its process group is killed.
    """
    try:
        child = subprocess.Popen(  # noqa: S603 - the user's own command, read by no shell
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
            child.wait()
    return f"exit status {child.returncode}" if child.returncode else ""
