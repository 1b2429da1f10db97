"""Read /proc: processes, counters of OOM kills, and the packages and libraries that a running program has loaded.

The kernel counts OOM kills per control group and for the whole machine.

``ProcessObserver`` follows a program and all that it started: which packages, which libtorch. A look costs some
system calls per process. Looks are frequent at first and whenever something new shows, then rarer; however much there
is to look at, they take less than a two-hundredth of one processor's time. The loader unpacks a package into a folder
``aotinductor_XXXXXX`` of the temporary directory and has the package open only meanwhile: the kernel reports when
such a folder appears, and that is a moment to look.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import threading
import time
from contextlib import suppress
from pathlib import Path

from aotidoctor.model.run import ProcessFacts

# Small reads of /proc and of files that a program has open, made thousands of times.
_IN_CREATE, _IN_NONBLOCK = 0x100, 0o4000
_ENDED = (b"Z", b"X")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def looks_like_package(path: str) -> bool:
    """Whether it is an archive, by its name or first bytes."""
    try:
        if not os.path.isfile(path):
            return False
        if path.endswith(".pt2"):
            return True
        if path.endswith((".jar", ".whl", ".docx", ".npz", ".pth")):
            return False
        with open(path, "rb") as stream:
            return stream.read(4) in _ZIP
    except (OSError, ValueError):
        return False


def children_of(pid: int) -> list[int]:
    """Running processes that ``pid`` has started."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(child) for child in read_proc(f"/proc/{pid}/task/{task}/children").split()]
    return found


def start_time(pid: int) -> str | None:
    """The time at which the process began, which tells it from another one that has its number."""
    fields = _stat(pid)
    return fields[19].decode() if len(fields) > 19 and fields[0] not in _ENDED else None


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or is a zombie that its parent has not reaped."""
    fields = _stat(pid)
    return not fields or fields[0] in _ENDED


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped it."""
    return _stat(pid)[:1] == [b"T"]


def _stat(pid: int) -> list[bytes]:
    """Its state and what follows; empty when it is gone. The name before that may hold anything."""
    return read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def core_limit(folder: str) -> str | None:
    """The soft limit of core files of the process whose folder in /proc this is."""
    for line in read_proc(f"{folder}/limits").splitlines():
        if line.startswith(b"Max core file size"):
            return line.split()[4].decode()
    return None


def read_link(path: str) -> str | None:
    """The target of a symbolic link; None where it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def read_proc(path: str) -> bytes:
    """The whole file; empty where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def read_proc_text(path: str) -> str:
    """The whole file as text; empty where it cannot be read."""
    return read_proc(path).decode("utf-8", "replace")


def folder_events(folder: str) -> int | None:
    """A descriptor that becomes readable when something is made in the folder; None where the kernel has no such."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        fd = int(libc.inotify_init1(os.O_CLOEXEC | _IN_NONBLOCK))
        if fd >= 0:
            if libc.inotify_add_watch(fd, os.fsencode(folder), _IN_CREATE) >= 0:
                return fd
            os.close(fd)
    return None


# Kills for memory.
_COUNTER = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def oom_kills() -> dict[str, int]:
    """Counter files that this process can see -> number of OOM kills so far (both cgroup versions, and the host)."""
    files = []
    for line in read_proc_text("/proc/self/cgroup").splitlines():
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            files += _upwards("/sys/fs/cgroup", group, "memory.events")
        elif "memory" in controllers.split(","):
            files += _upwards("/sys/fs/cgroup/memory", group, "memory.oom_control")
    counts: dict[str, int] = {}
    for path in (*files, "/proc/vmstat"):
        found = _COUNTER.search(read_proc_text(path))
        if found:
            counts[path] = int(found[1])
    return counts


def first_increase(before: dict[str, int], after: dict[str, int]) -> str | None:
    """The first counter that rose, as text; None when none did."""
    for path, count in after.items():
        if count > before.get(path, count):
            return f"oom_kill in {path} rose from {before[path]} to {count}"
    return None


def _upwards(mount: str, path: str, name: str) -> list[str]:
    """The file ``name`` of the group and of each group above it (inside a container only the top may be visible)."""
    parts = [part for part in path.split("/") if part]
    return ["/".join((mount, *parts[:count], name)) for count in range(len(parts), -1, -1)]


# Packages and libraries of a running program.
FIRST_S, SLOWEST_S, SLOWER = 0.01, 1.0, 1.3
SHARE = 200
_MOST_PROCESSES, _MOST_FILES, _MOST_FOUND = 512, 2048, 64
_UNPACKED = re.compile(r"(/.*/data/aotinductor/[^/]+)/[^/]*\.so(?: \(deleted\))?$")
_LIBTORCH = re.compile(r"(/.*/libtorch(?:_cpu|_cuda|_hip)?\.so[^/ ]*)$")
_FOLDER = "aotinductor_"
# File systems know the time to some milliseconds.
_CLOCK_S = 0.05


_LAST_LOOK_S = 5.0


class ProcessObserver:
    """Looks at process ``pid`` and its descendants, except ``without``, until ``finish``."""

    def __init__(self, pid: int, temporary: str, *, without: int = 0) -> None:
        self._root = pid
        self._without = without
        self._temporary = temporary
        self._began = time.time()
        self._known: dict[int, _ProcessSample] = {}
        self._found: dict[str, dict[str, None]] = {name: {} for name in ("opened", "named", "unpacked", "libraries")}
        self._judged: dict[str, bool] = {}
        self._news = False
        self._looks = self._processes = 0
        self._holder: int | None = None
        self._facts: dict[str, str | None] = {}
        self._stop = os.pipe()
        self._events = folder_events(temporary)
        self._thread = threading.Thread(target=self._run, daemon=True, name="observer")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> ProcessFacts:
        """Stop looking; all that was found."""
        os.write(self._stop[1], b".")
        # A process that hangs in the kernel may hold up who reads its files.
        self._thread.join(_LAST_LOOK_S)
        return self.facts_so_far()

    def facts_so_far(self) -> ProcessFacts:
        """All so far."""
        # Folders that the loader made since the beginning and did not remove.
        left: list[str] = []
        with suppress(OSError):
            for entry in Path(self._temporary).iterdir():
                if entry.name.startswith(_FOLDER) and entry.stat().st_mtime >= self._began - _CLOCK_S:
                    left += [str(path) for path in entry.glob("**/data/aotinductor/*") if path.is_dir()]
        return ProcessFacts(
            opened=tuple(self._found["opened"]),
            named=tuple(self._found["named"]),
            unpacked=tuple(self._found["unpacked"]),
            left=tuple(left[:_MOST_FOUND]),
            libraries=tuple(self._found["libraries"]),
            cwd=self._facts.get("cwd"),
            exe=self._facts.get("exe"),
            core_limit=self._facts.get("core_limit"),
            processes=self._processes,
            looks=self._looks,
            holder=self._holder,
        )

    def processes(self) -> tuple[int, ...]:
        """The program and what it started, as far as they are still there."""
        return tuple(pid for pid, process in self._known.items() if process.born == start_time(pid))

    def look(self) -> None:
        """One look at all processes."""
        self._looks += 1
        for pid in self._tree():
            process = self._known.get(pid)
            if process is None or process.born != start_time(pid):
                process = self._known[pid] = _ProcessSample(start_time(pid))
                self._processes += 1
                self._news = True
            folder = f"/proc/{pid}"
            if pid == self._root:
                self._facts |= {name: read_link(f"{folder}/{name}") or self._facts.get(name) for name in ("cwd", "exe")}
                self._facts["core_limit"] = core_limit(folder) or self._facts.get("core_limit")
            words = read_proc(f"{folder}/cmdline")
            if words != process.words:
                process.words = words
                self._words(words, read_link(f"{folder}/cwd"))
            self._files(folder)
            size = read_proc(f"{folder}/statm")
            if size != process.size:
                process.size = size
                self._maps(pid, read_proc(f"{folder}/maps"))

    def _run(self) -> None:
        poll = select.poll()
        for fd in (self._stop[0], self._events):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        interval = FIRST_S
        while True:
            began = time.monotonic()
            self._news = False
            # Whatever goes wrong in here must not show in the program's streams.
            with suppress(Exception):
                self.look()
            cost = time.monotonic() - began
            interval = FIRST_S if self._news else min(SLOWEST_S, interval * SLOWER)
            ready = {fd for fd, _ in poll.poll(1000 * max(interval, cost * SHARE))}
            if self._stop[0] in ready:
                return
            if self._events in ready and self._events is not None:
                os.read(self._events, 1 << 16)
                interval = FIRST_S

    def _tree(self) -> list[int]:
        """The root, what is below it, and what was: one whose parent has ended belongs to somebody else."""
        found = dict.fromkeys((self._root, *self.processes()))
        for pid in tuple(found):
            todo = [pid]
            while todo and len(found) < _MOST_PROCESSES:
                below = [child for child in children_of(todo.pop()) if child not in found and child != self._without]
                found.update(dict.fromkeys(below))
                todo += below
        return list(found)

    def _words(self, words: bytes, cwd: str | None) -> None:
        for word in words.split(b"\0")[:_MOST_FILES]:
            text = os.fsdecode(word)
            for candidate in ("" if text.startswith("-") else text, text.partition("=")[2]):
                path = os.path.join(cwd or "/", candidate)
                if candidate and (self._is_package(path) or (path.endswith(".pt2") and "\0" not in path)):
                    self._note("named", os.path.normpath(path))

    def _files(self, folder: str) -> None:
        try:
            names = os.listdir(f"{folder}/fd")[:_MOST_FILES]
        except OSError:
            return
        for name in names:
            path = read_link(f"{folder}/fd/{name}")
            if path is not None and path.startswith("/") and self._is_package(path):
                self._note("opened", path)

    def _maps(self, pid: int, maps: bytes) -> None:
        if b"/data/aotinductor/" not in maps and b"/libtorch" not in maps:
            return
        for line in maps.splitlines():
            at = line.find(b"/")
            if at < 0 or not (b"aotinductor" in line or b"libtorch" in line):
                continue
            path = os.fsdecode(line[at:])
            if (unpacked := _UNPACKED.match(path)) is not None:
                self._note("unpacked", unpacked[1])
                self._holder = pid
            elif (library := _LIBTORCH.match(path)) is not None:
                self._note("libraries", library[1])

    def _note(self, kind: str, path: str) -> None:
        found = self._found[kind]
        if path not in found and len(found) < _MOST_FOUND:
            found[path] = None
            self._news = True

    def _is_package(self, path: str) -> bool:
        """Whether it is an archive that may be a package; each path is examined once."""
        known = self._judged.get(path)
        if known is None:
            known = looks_like_package(path)
            if len(self._judged) < 16 * _MOST_FILES:
                self._judged[path] = known
        return known


class _ProcessSample:
    """State of one process at the last look."""

    def __init__(self, born: str | None) -> None:
        self.born = born
        self.words = b""
        self.size = b""
