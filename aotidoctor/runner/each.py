"""A command of aotidoctor in a process of its own, for who has many to ask."""

from __future__ import annotations

import subprocess
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
    done = subprocess.run(own_command(words), capture_output=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - ourselves
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    # Progress is on stderr; it is shown where nothing else was said.
    said = (done.stdout or done.stderr).decode("utf-8", "replace")
    return Ended(path=path, status=status, output=said.rstrip())
