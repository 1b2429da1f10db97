"""What /proc tells of a program and all that it started, while it runs: which packages, which libtorch.

A look costs some system calls per process. Looks are frequent at first and whenever something new shows, then rarer;
however much there is to look at, they take less than a two-hundredth of one processor's time. The loader unpacks a
package into a folder ``aotinductor_XXXXXX`` of the temporary directory and has the package open only meanwhile: the
kernel tells when such a folder appears, and that is a moment to look.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
from contextlib import suppress
from pathlib import Path

from aotidoctor.model.watched import Seen
from aotidoctor.runner.proc_files import (
    born,
    children_of,
    core_limit,
    folder_events,
    is_missing_package,
    link,
    looks_like_package,
    read,
)

FIRST_S, SLOWEST_S, SLOWER = 0.01, 1.0, 1.3
SHARE = 200
_MOST_PROCESSES, _MOST_FILES, _MOST_FOUND = 512, 2048, 64
_UNPACKED = re.compile(r"(/.*/data/aotinductor/[^/]+)/[^/]*\.so(?: \(deleted\))?$")
_LIBTORCH = re.compile(r"(/.*/libtorch(?:_cpu|_cuda|_hip)?\.so[^/ ]*)$")
_FOLDER = "aotinductor_"
# File systems know the time to some milliseconds.
_CLOCK_S = 0.05


class Observer:
    """Looks at process ``pid`` and its descendants, except ``without``, until ``finish``."""

    def __init__(self, pid: int, temporary: str, *, without: int = 0) -> None:
        self._root = pid
        self._without = without
        self._temporary = temporary
        self._began = time.time()
        self._known: dict[int, _Process] = {}
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

    def finish(self) -> Seen:
        """Stop, and tell."""
        os.write(self._stop[1], b".")
        self._thread.join()
        return self.seen()

    def seen(self) -> Seen:
        """All so far."""
        return Seen(
            opened=tuple(self._found["opened"]),
            named=tuple(self._found["named"]),
            unpacked=tuple(self._found["unpacked"]),
            left=tuple(self._left()),
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
        return tuple(pid for pid, process in self._known.items() if process.born == born(pid))

    def look(self) -> None:
        """One look at all processes."""
        self._looks += 1
        for pid in self._tree():
            process = self._known.get(pid)
            if process is None or process.born != born(pid):
                process = self._known[pid] = _Process(born(pid))
                self._processes += 1
                self._news = True
            self._look_at(pid, process)

    def _run(self) -> None:
        poll = select.poll()
        for fd in (self._stop[0], self._events):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        interval = FIRST_S
        while True:
            began = time.monotonic()
            self._news = False
            # Whatever goes wrong in here, the program's streams shall not tell of it.
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

    def _look_at(self, pid: int, process: _Process) -> None:
        folder = f"/proc/{pid}"
        if pid == self._root:
            self._facts |= {name: link(f"{folder}/{name}") or self._facts.get(name) for name in ("cwd", "exe")}
            self._facts["core_limit"] = core_limit(folder) or self._facts.get("core_limit")
        words = read(f"{folder}/cmdline")
        if words != process.words:
            process.words = words
            self._words(words, link(f"{folder}/cwd"))
        self._files(folder)
        size = read(f"{folder}/statm")
        if size != process.size:
            process.size = size
            self._maps(pid, read(f"{folder}/maps"))

    def _words(self, words: bytes, cwd: str | None) -> None:
        for word in words.split(b"\0")[:_MOST_FILES]:
            text = os.fsdecode(word)
            for candidate in ("" if text.startswith("-") else text, text.partition("=")[2]):
                path = os.path.join(cwd or "/", candidate)  # noqa: PTH118 - as it was meant there
                if candidate and (self._is_package(path) or is_missing_package(path)):
                    self._note("named", os.path.normpath(path))

    def _files(self, folder: str) -> None:
        try:
            names = os.listdir(f"{folder}/fd")[:_MOST_FILES]  # noqa: PTH208 - thousands of looks
        except OSError:
            return
        for name in names:
            path = link(f"{folder}/fd/{name}")
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
        """Whether it is an archive that may be a package; of each path that is asked once."""
        known = self._judged.get(path)
        if known is None:
            known = looks_like_package(path)
            if len(self._judged) < 16 * _MOST_FILES:
                self._judged[path] = known
        return known

    def _left(self) -> list[str]:
        """Folders that the loader made since the beginning and did not remove."""
        found = []
        with suppress(OSError):
            for entry in Path(self._temporary).iterdir():
                if entry.name.startswith(_FOLDER) and entry.stat().st_mtime >= self._began - _CLOCK_S:
                    found += [str(path) for path in entry.glob("**/data/aotinductor/*") if path.is_dir()]
        return found[:_MOST_FOUND]


class _Process:
    """What was last seen of one process."""

    def __init__(self, born: str | None) -> None:
        self.born = born
        self.words = b""
        self.size = b""
