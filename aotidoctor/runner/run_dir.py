"""Keep the files of a child run: one directory per runner, one below it per run; read output of tools.

    <work>/aotidoctor-XXXX/    output of the forkserver; removed by close(), or by it when the parent was killed
        R1-token/              request.json channel.jsonl stdout stderr cwd/ tmp/
        scratch/               what one run keeps for a later one

The child's TMPDIR lies in the directory that TMPDIR names for the user, so that a full, read-only or ``noexec`` one
shows as it does for the user; everything else lies in a directory that works.

Tools report on a run in two ways: the one that the child ran under writes a file, the others look at it from outside.
What /proc says of the threads of a process that does not end (running or asleep, in which call, for how long) needs
no debugger and no permission beyond being the same user. It is one section of text::

    === tasks
    machine=x86_64
    tid=17 state=R cpu=4.97 wchan=0 syscall=running name=python
"""

from __future__ import annotations

import json
import os
import platform
import re
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.record import JsonValue, record, values_of
from aotidoctor.model.run import DEFAULT_TMP, PRIVATE_PREFIX, RUN_VARIABLE, Request
from aotidoctor.runner.processes import read_proc_text

_OTHER_PLACES = ("/var/tmp", "/dev/shm")  # noqa: S108 - a private folder is made there
_ENOUGH = 64 * 1024 * 1024
# What mkdtemp makes of the name that stands in PyTorch up to 2.12.
_UNPACKED = re.compile(rf"{DEFAULT_TMP}/[A-Za-z0-9]{{6}}")


@record
class RunDir:
    """Directory of one run. ``tmp`` is the child's TMPDIR; ``foreign_tmp`` is set when it lies outside ``path``."""

    path: Path
    token: str
    tmp: str
    foreign_tmp: Path | None = None

    def file(self, name: str) -> Path:
        """Path of a file of this run."""
        return self.path / name

    def remove(self) -> None:
        """Remove everything of this run, read-only directories that the child made included."""
        for path in (self.path, self.foreign_tmp):
            if path is not None:
                remove_tree(path)


def make_work_dir(environ: Mapping[str, str]) -> Path:
    """Make the runner's own directory in the first good place.

    Raises:
        OSError: no place can be written to.
    """
    candidates = [environ.get("TMPDIR") or DEFAULT_TMP, DEFAULT_TMP, *_OTHER_PLACES, current_directory()]
    good = [place for place in candidates if _is_good(place)]
    import tempfile

    for place in [*good, *candidates]:
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix=PRIVATE_PREFIX, dir=Path(place).absolute()))
    raise OSError(f"no directory for temporary files among {', '.join(candidates)}")


def current_directory() -> str:
    """The directory this process is in; ``/`` when that has been removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/"


def make_run_dir(work_dir: Path, run_id: str, tmp_base: str | None) -> RunDir:
    """Make the directory and the empty files of one run; ``tmp_base`` is the child's TMPDIR as the user set it."""
    token = os.urandom(8).hex()
    path = work_dir / f"{run_id}-{token}"
    for directory in (path, path / "cwd", path / "tmp"):
        directory.mkdir(mode=0o700)
    for name in ("channel.jsonl", "stdout", "stderr"):
        (path / name).touch(mode=0o600, exist_ok=False)
    own = RunDir(path=path, token=token, tmp=str(path / "tmp"))
    base = Path(tmp_base or DEFAULT_TMP).absolute()
    if work_dir.parent == base:
        return own
    foreign = base / f"{PRIVATE_PREFIX}{token}"
    try:
        foreign.mkdir(mode=0o700)
    except OSError:
        # The user's own TMPDIR is broken; the child shall meet it as it is.
        return replace(own, tmp=str(base))
    return replace(own, tmp=str(foreign), foreign_tmp=foreign)


def write_request(request: Request, run_dir: RunDir, env: Mapping[str, str | None], *, parent: int) -> None:
    """Write what the child reads first. ``parent`` is the process that starts it."""
    document = {
        "job": request.job,
        "payload": request.payload,
        "env": dict(env),
        "asked_env": dict(request.env),
        "memory_limit": request.memory_limit,
        "debugger": request.debugger,
        "stacks": request.stacks,
        "token": run_dir.token,
        "parent": parent,
        "user_cwd": current_directory(),
        # What one run keeps for a later one; it goes when the runner is closed.
        "scratch": str(run_dir.path.parent / "scratch"),
    }
    run_dir.file("request.json").write_text(json.dumps(document, default=values_of), encoding="utf-8")


@contextmanager
def lone_run_dir(environ: Mapping[str, str], tmp_base: str | None) -> Iterator[RunDir]:
    """The directory of a run that no runner made; it goes at the end of the block. Raises OSError."""
    work = make_work_dir(environ)
    with ExitStack() as stack:
        stack.callback(remove_tree, work)
        run_dir = make_run_dir(work, "W1", tmp_base)
        stack.callback(run_dir.remove)
        yield run_dir


def remove_tree(path: Path) -> None:
    """Remove ``path`` and what is below, making directories writable where needed; what cannot go, stays."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for parent, _, _ in os.walk(path):
            with suppress(OSError):
                Path(parent).chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)


def remove_unpacked(folders: JsonValue) -> None:
    """Remove the folders ``/tmp/XXXXXX`` that an older PyTorch unpacked to, as a child recorded them."""
    for folder in folders if isinstance(folders, list) else ():
        if isinstance(folder, str) and _UNPACKED.fullmatch(folder):
            with suppress(OSError):
                facts = os.lstat(folder)
                if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid():
                    remove_tree(Path(folder))


def _is_good(place: str) -> bool:
    """Whether ``place`` is a directory that can be written to, with room, from which code can be loaded."""
    try:
        facts = os.statvfs(place)
    except OSError:
        return False
    room = facts.f_bavail * facts.f_frsize >= _ENOUGH
    return room and not facts.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK | os.X_OK)


# Output of tools.
TOOL_OUTPUT_FILE = "tool.log"
MAX_TOOL_OUTPUT = 128 * 1024


def read_tool_output(run_dir: Path) -> str:
    """The first part of its file, since the first finding is the one that counts; empty when there is none."""
    try:
        with (run_dir / TOOL_OUTPUT_FILE).open("rb") as stream:
            return stream.read(MAX_TOOL_OUTPUT).decode("utf-8", "replace")
    except OSError:
        return ""


def ask_tool(command: tuple[str, ...], run_dir: RunDir, seconds: float) -> subprocess.CompletedProcess[bytes] | str:
    """Run a tool, marked as a part of the run: what it printed, or why it printed nothing."""
    began = time.monotonic()
    try:
        return subprocess.run(
            command,
            capture_output=True,
            timeout=seconds,
            env={"PATH": os.defpath, "LC_ALL": "C", "HOME": str(run_dir.path), RUN_VARIABLE: run_dir.token},
            cwd=run_dir.path,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        name = Path(command[0]).name
        return f"{name} printed nothing after {time.monotonic() - began:.0f} s: {type(error).__name__}"


# The threads of a process, from /proc.
MAX_TASKS = 256


def worker_process(run_dir: RunDir, leader: int) -> int:
    """The process of the worker, which is not the one that was started when ``python`` is a script."""
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
    name, _, rest = read_proc_text(f"{folder}/stat").partition("(")[2].rpartition(")")
    fields = rest.split()
    if len(fields) < 13:
        return None
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    wchan = read_proc_text(f"{folder}/wchan").strip() or "?"
    call = (read_proc_text(f"{folder}/syscall").split() or ["?"])[0]
    return f"tid={folder.name} state={fields[0]} cpu={seconds:.2f} wchan={wchan} syscall={call} name={name}"
