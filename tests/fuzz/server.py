"""A fork server around the command line: one process imports everything, each case is a fork of it in a folder of its own.

A case is good when it ends with a status that is documented, one valid document on stdout, no traceback, within its time
and memory, and has written nothing, started nothing, unpickled nothing and loaded nothing native.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import resource
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.unit.reports.test_controls import OBEYED

STATUSES = {0, 1, 3, 4, 6}
CPU_S, MEMORY = 3.0, 300 << 20
_KILL_S = 15
_FORBIDDEN = (
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "socket.connect", "socket.bind",
    "pickle.find_class", "ctypes.dlopen", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.symlink",
    "os.link", "os.truncate", "os.chmod", "os.chown", "shutil.rmtree", "os.kill",
)  # fmt: skip
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
    out, err = folder / ".stdout", folder / ".stderr"
    before = _tree(folder)
    pid = os.fork()
    if pid == 0:
        _child(words, folder, out, err)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    stdout, stderr = out.read_bytes(), err.read_bytes()
    out.unlink()
    err.unlink()
    seconds = used.ru_utime + used.ru_stime
    faults = list(_faults(words, code, stdout, stderr))
    if seconds > CPU_S:
        faults.append(f"{seconds:.1f} s of CPU time")
    if used.ru_maxrss << 10 > MEMORY:
        faults.append(f"{used.ru_maxrss >> 10} MB of memory")
    if _tree(folder) != before:
        faults.append(f"files: {sorted(set(_tree(folder)) ^ set(before))}")
    return Answer(
        words=words,
        status=code,
        seconds=seconds,
        memory=used.ru_maxrss << 10,
        stdout=stdout,
        stderr=stderr,
        faults=tuple(faults),
    )


def _tree(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file())


def _child(words: tuple[str, ...], folder: Path, out: Path, err: Path) -> None:
    status = 70
    try:
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (_KILL_S, _KILL_S))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["aotidoctor", *words]
        if words[0] == "verify":
            # What the archive answers by itself, as where there is no torch. Its child is meant to be started, and ends.
            sys.path[:] = [place for place in sys.path if not Path(place, "torch").exists()]
        from aotidoctor.__main__ import main

        if words[0] != "verify":
            sys.addaudithook(_watch)
        # What the process that it comes from left for its own end (folders to remove) is not the command's.
        atexit._clear()
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _watch(event: str, given: tuple) -> None:
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
