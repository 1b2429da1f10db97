"""What /proc says of the threads of a process that does not end: running or asleep, in which call, for how long.

It needs no debugger and no permission beyond being the same user. One section of text::

    === tasks
    machine=x86_64
    tid=17 state=R cpu=4.97 wchan=0 syscall=running name=python
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from aotidoctor.runner.places import RunDir
from aotidoctor.runner.proc_files import read_text

MAX_TASKS = 256


def process_of(run_dir: RunDir, leader: int) -> int:
    """The worker's own process, which is not the one that was started when ``python`` is a script."""
    try:
        return int(run_dir.file("pid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return leader


def task_section(pid: int) -> str:
    """The section, empty when the process is gone."""
    try:
        tasks = sorted(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir())[:MAX_TASKS]
    except OSError:
        return ""
    lines = [line for tid in tasks if (line := _task(Path(f"/proc/{pid}/task/{tid}")))]
    return "\n".join(["=== tasks", f"machine={platform.machine()}", *lines, ""])


def _task(folder: Path) -> str | None:
    name, _, rest = read_text(f"{folder}/stat").partition("(")[2].rpartition(")")
    fields = rest.split()
    if len(fields) < 13:
        return None
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    wchan = read_text(f"{folder}/wchan").strip() or "?"
    call = (read_text(f"{folder}/syscall").split() or ["?"])[0]
    return f"tid={folder.name} state={fields[0]} cpu={seconds:.2f} wchan={wchan} syscall={call} name={name}"
