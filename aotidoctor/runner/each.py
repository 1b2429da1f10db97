"""A command of aotidoctor in a process of its own, for who has many to ask."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence

from aotidoctor.model.record import record
from aotidoctor.runner.own import own_command


@record
class Ended:
    """How it ended: what was examined, exit status (128 + signal where one ended it), what it printed."""

    path: str
    status: int
    output: str


def run_each(words: Sequence[str], path: str) -> Ended:
    """``aotidoctor words``, to its end; the limits are the command's own."""
    # Files: the end of a pipe would be that of whoever the command leaves behind.
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        done = subprocess.run(  # noqa: S603 - ourselves
            own_command(words), check=False, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        stdout.seek(0)
        stderr.seek(0)
        # Progress is on stderr; it is shown where nothing else was said.
        said = (stdout.read() or stderr.read()).decode("utf-8", "replace")
    return Ended(path=path, status=status, output=said.rstrip())
