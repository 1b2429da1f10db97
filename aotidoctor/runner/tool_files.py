"""What tools say of a run: the one that the child ran under, in its file, and those that look at it from outside."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from aotidoctor.model.child_protocol import MARKER
from aotidoctor.runner.places import RunDir

FILE = "tool.log"
MAX_BYTES = 128 * 1024


def read_tool_output(run_dir: Path) -> str:
    """The first part of its file, since the first finding is the one that counts; empty when there is none."""
    try:
        with (run_dir / FILE).open("rb") as stream:
            return stream.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def ask_tool(command: tuple[str, ...], run_dir: RunDir, seconds: float) -> subprocess.CompletedProcess[bytes] | str:
    """What the command printed, found with all else that the run leaves; or why it printed nothing."""
    began = time.monotonic()
    try:
        return subprocess.run(  # noqa: S603 - an argument vector, no shell
            command,
            capture_output=True,
            timeout=seconds,
            env={"PATH": os.defpath, "LC_ALL": "C", "HOME": str(run_dir.path), MARKER: run_dir.token},
            cwd=run_dir.path,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        name = Path(command[0]).name
        return f"{name} printed nothing after {time.monotonic() - began:.0f} s: {type(error).__name__}"
