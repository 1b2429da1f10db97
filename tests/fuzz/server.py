"""The command line asked without a start of Python for each case: one process imports everything, forks of it answer.

``ask`` forks for one case, ``ask_here`` asks in this process, which is such a fork. Each case has a folder of its own.
A case is good when it ends with a status that is documented, one valid document on stdout, no traceback, within its time
and memory, and has written nothing, started nothing, unpickled nothing and loaded nothing native.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import re
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from tests.unit.reports.test_controls import OBEYED

STATUSES = {0, 1, 3, 4, 6}
CPU_S, MEMORY = 3.0, 300 << 20
_KILL_S = 15
# What no CPU time ends: a read from a pipe, a wait for a lock.
LONGEST_WAIT_S = 90
_FORBIDDEN = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "socket.connect", "socket.bind",
    "pickle.find_class", "ctypes.dlopen", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.symlink",
    "os.link", "os.truncate", "os.chmod", "os.chown", "shutil.rmtree", "os.kill",
)  # fmt: skip
OUT, ERR = ".stdout", ".stderr"
OF_TIME, OF_MEMORY = " of CPU time", " of memory"
_watching: list[bool] = []
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a case did: exit status (negative: a signal), CPU seconds, peak memory in bytes, output, faults found."""

    words: tuple[str, ...]
    status: int
    seconds: float
    memory: int
    stdout: bytes
    stderr: bytes
    faults: tuple[str, ...]


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Import all that a command can need, once, and read the playbooks."""
    import aotidoctor

    for module in pkgutil.walk_packages(aotidoctor.__path__, "aotidoctor."):
        if not module.name.startswith("aotidoctor.worker") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from aotidoctor.cli import build_app
    from aotidoctor.logs.patterns import load_patterns

    build_app()
    load_patterns()


def ask(words: tuple[str, ...], folder: Path) -> Answer:
    """Run ``aotidoctor`` with ``words`` in a fork whose working directory is ``folder``."""
    before = _tree(folder)
    pid = os.fork()
    if pid == 0:
        _child(words, folder)
    ended = threading.Event()
    killer = threading.Thread(target=lambda: ended.wait(LONGEST_WAIT_S) or os.kill(pid, signal.SIGKILL))
    killer.start()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    ended.set()
    killer.join()
    _, status, used = os.wait4(pid, 0)
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss << 10
    return _answer(words, folder, before, os.waitstatus_to_exitcode(status), seconds, memory)


def ask_here(words: tuple[str, ...], folder: Path) -> Answer:
    """Likewise in this process, whose standard streams are lost; what no longer belongs to a case is left as it was.

    The memory is the most that this process had meanwhile: a fault of cost counts where ``ask`` finds it, too.
    """
    if words[0] == "verify":
        # It starts a process, which is forbidden here, and changes the search path.
        return ask(words, folder)
    before = _tree(folder)
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(began) + _KILL_S, resource.RLIM_INFINITY))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = _run(words, folder, partial(_app(), prog_name="aotidoctor"), watched=True)
    os.chdir("/")
    seconds = time.process_time() - began
    peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return _answer(words, folder, before, status, seconds, int(peak[1]) << 10 if peak else 0)


def _answer(words, folder: Path, before: list, status: int, seconds: float, memory: int) -> Answer:
    out, err = folder / OUT, folder / ERR
    stdout, stderr = out.read_bytes(), err.read_bytes()
    out.unlink()
    err.unlink()
    faults = list(_faults(words, status, stdout, stderr))
    if seconds > CPU_S:
        faults.append(f"{seconds:.1f} s{OF_TIME}")
    if memory > MEMORY:
        faults.append(f"{memory >> 20} MB{OF_MEMORY}")
    if _tree(folder) != before:
        faults.append(f"files: {sorted(set(_tree(folder)) ^ set(before))}")
    return Answer(
        words=words, status=status, seconds=seconds, memory=memory, stdout=stdout, stderr=stderr, faults=tuple(faults)
    )


def _tree(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file())


def _child(words: tuple[str, ...], folder: Path) -> None:
    status = 70
    with suppress(BaseException):
        resource.setrlimit(resource.RLIMIT_CPU, (_KILL_S, _KILL_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if words[0] == "verify":
            # What the archive answers by itself, as where there is no torch. Its child is meant to be started, and ends.
            sys.path[:] = [place for place in sys.path if not Path(place, "torch").exists()]
        # What the process that it comes from left for its own end (folders to remove) is not the command's.
        atexit._clear()
        from aotidoctor.__main__ import main

        _app()
        status = _run(words, folder, main, watched=words[0] != "verify")
    os._exit(status)


def _run(words: tuple[str, ...], folder: Path, command: Callable[[], object], *, watched: bool) -> int:
    """The exit status of a command that writes into files of ``folder``."""
    for number, path in ((1, folder / OUT), (2, folder / ERR), (0, os.devnull)):
        opened = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    os.chdir(folder)
    sys.argv = ["aotidoctor", *words]
    _watching.append(watched)
    try:
        command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        status = 1
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        _watching.pop()
    return status


@lru_cache(maxsize=1)
def _app():
    from aotidoctor.cli import build_app

    # It cannot be taken away again, and looks only where a command is watched.
    sys.addaudithook(_watch)
    return build_app()


def _watch(event: str, given: tuple) -> None:
    if not _watching or not _watching[-1]:
        return
    if event == "open":
        path, mode, flags = given
        writes = isinstance(flags, int) and flags & _WRITES and not str(path).startswith("/dev/")
        if writes and not isinstance(path, int):
            _report(f"opens {path!r} for writing ({mode}, {flags})")
    elif event in _FORBIDDEN:
        _report(f"{event}{given!r:.200}")


def _report(what: str) -> None:
    os.write(2, f"\nFORBIDDEN {what}\n".encode("utf-8", "replace"))


def _faults(words: tuple[str, ...], code: int, stdout: bytes, stderr: bytes):
    if code not in STATUSES:
        yield f"exit status {code}"
    if b"Traceback" in stderr:
        yield "a traceback on stderr"
    for line in stderr.split(b"\n"):
        if line.startswith(b"FORBIDDEN"):
            yield line.decode("utf-8", "replace")
    text = stdout.decode("utf-8", "surrogateescape")
    if not text.strip() and "github" not in words:
        yield "nothing on stdout"
    if OBEYED.search(text):
        yield "control characters on stdout"
    if "--json" in words:
        yield from _document_faults(text)


def _document_faults(text: str):
    try:
        document = json.loads(text)
    except ValueError as error:
        yield f"no JSON document: {error}"
        return
    if document.get("internal_error"):
        yield f"internal error: {document['internal_error'][-600:]}"
    for item in document.get("not_checked", ()):
        if "own error" in item["reason"]:
            yield f"{item['name']}: {item['reason'][-600:]}"
    if len(text) > 8 << 20:
        yield f"a document of {len(text)} bytes"


def now() -> float:
    """Seconds, for the figures."""
    return time.monotonic()
