"""Find the core file of a program that died, or why there is none; read stacks of watched programs.

The kernel puts a core file where ``/proc/sys/kernel/core_pattern`` says. It is an ELF file: its segments give addresses
and rights, its note NT_FILE the files that were mapped. A program that does not end has its stacks read while it runs.
"""

from __future__ import annotations

import glob
import os
import re
import resource
import shutil
import stat
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from aotidoctor.model.record import record
from aotidoctor.model.run import Signalled, WatchedProgram
from aotidoctor.runner.gdb import COLLECT_S, GdbError, hang_stacks, start_gdb, stop_sections
from aotidoctor.runner.processes import read_proc_text
from aotidoctor.runner.run_dir import current_directory, lone_run_dir, task_section

# The kernel's pattern. Pure.
FILE, SYSTEMD, APPORT, PROGRAM, NONE = "file", "systemd", "apport", "program", "none"
_FIELD = re.compile(r"%(.?)", re.DOTALL)


@record
class CorePattern:
    """``kind`` is ``FILE``, ``SYSTEMD``, ``APPORT``, ``PROGRAM`` or ``NONE``; ``text`` the file name or program.

    ``uses_pid`` says that the number of the process is appended to a name that does not hold it.
    """

    kind: str
    text: str
    uses_pid: bool = False


def read_core_pattern(pattern: str, uses_pid: str = "0") -> CorePattern:
    """The meaning of both files' contents."""
    text = pattern.rstrip("\n")
    if not text:
        # Then a name is still made, of the number alone, but only where that is switched on.
        alone = uses_pid.strip() == "1"
        return CorePattern(kind=FILE if alone else NONE, text="", uses_pid=alone)
    if not text.startswith("|"):
        return CorePattern(kind=FILE, text=text, uses_pid=uses_pid.strip() == "1" and "%p" not in text)
    program = (text[1:].split() or [""])[0]
    name = PurePosixPath(program).name
    kind = SYSTEMD if name == "systemd-coredump" else APPORT if name == "apport" else PROGRAM
    return CorePattern(kind=kind, text=program)


def core_glob(pattern: CorePattern, facts: Mapping[str, str], cwd: str) -> str:
    """A glob that matches the file; ``facts`` maps letters of the pattern (``p``, ``e``...) to what is known."""

    def fill(letter: str) -> str:
        if letter == "%":
            return "%"
        return glob.escape(facts[letter]) if letter in facts else "*" if letter else ""

    parts = _FIELD.split(pattern.text)
    text = "".join(glob.escape(part) if index % 2 == 0 else fill(part) for index, part in enumerate(parts))
    text += f".{facts['p']}" if pattern.uses_pid else ""
    return text if text.startswith("/") else f"{glob.escape(cwd.rstrip('/'))}/{text}"


# The memory map in a core file, as the lines of /proc/PID/maps.
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_PT_LOAD, _PT_NOTE, _NT_FILE = 1, 4, 0x46494C45
_MOST_SEGMENTS, _MOST_NOTES = 1 << 17, 64 << 20
_LITTLE_64 = b"\x7fELF\x02\x01"


def core_maps(path: str) -> list[str]:
    """The lines; empty for a file that cannot be read so."""
    try:
        with Path(path).open("rb") as stream:
            header = _HEADER.unpack(stream.read(_HEADER.size))
            if not header[0].startswith(_LITTLE_64):
                return []
            stream.seek(header[5])
            table = stream.read(_SEGMENT.size * min(header[10], _MOST_SEGMENTS))
            segments = list(_SEGMENT.iter_unpack(table))
            files: dict[int, tuple[int, str]] = {}
            for kind, _, offset, _, _, size, _, _ in segments:
                if kind == _PT_NOTE:
                    stream.seek(offset)
                    files |= _files(stream.read(min(size, _MOST_NOTES)))
            lines = []
            for kind, flags, _, start, _, _, length, _ in segments:
                if kind == _PT_LOAD:
                    rights = "".join(letter if flags & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
                    offset, file = files.get(start, (0, ""))
                    lines.append(f"{start:x}-{start + length:x} {rights}p {offset:08x} 00:00 0 {file}".rstrip())
            return lines
    except (OSError, struct.error, ValueError):
        return []


def _files(notes: bytes) -> dict[int, tuple[int, str]]:
    """First address -> offset and path, of the note that lists mapped files."""
    at = 0
    while at + _NOTE.size <= len(notes):
        name_size, size, kind = _NOTE.unpack_from(notes, at)
        body = at + _NOTE.size + (name_size + 3) // 4 * 4
        if kind == _NT_FILE:
            note = notes[body : body + size]
            count, page = struct.unpack_from("<QQ", note)
            names = note[16 + 24 * count :].split(b"\0")
            found = {}
            for index in range(min(count, len(names))):
                start, _, offset = struct.unpack_from("<QQQ", note, 16 + 24 * index)
                found[start] = (offset * page, names[index].decode("utf-8", "replace"))
            return found
        at = body + (size + 3) // 4 * 4
    return {}


# Native stacks of a watched program.
_OPEN_S = 60.0
# Nothing looks for this one: it is ended where it is used.
_MARK = "watch"


def running_sections(pid: int, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """The threads of the process by /proc, then their stacks; and the reason where there are no stacks."""
    text = task_section(pid)
    try:
        with lone_run_dir(environ, environ.get("TMPDIR")) as run_dir:
            stacks, problem = hang_stacks(run_dir, pid, environ.get("PATH") or os.defpath)
    except OSError as error:
        return text, str(error)
    return text + stacks, problem


def core_sections(core: str, program: str | None, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """The sections that ``Outcome.debugger_output`` has for a crash, from a core file; or why there are none."""
    path = environ.get("PATH") or os.defpath
    try:
        with closing(start_gdb(path, token=_MARK, directory=Path("/"))) as gdb:
            gdb.settle(time.monotonic() + COLLECT_S)
            if program is not None:
                quoted = program.replace("\\", "\\\\").replace('"', '\\"')
                gdb.ask(f'file "{quoted}"', _OPEN_S)
            # Unlike a program, a core file is the rest of the line, as it is.
            answer = gdb.ask(f"core-file {core}", _OPEN_S)
            # In a core file the signal is past; the reading of stacks knows one wording.
            stop = answer.replace("Program terminated with signal", "Program received signal")
            if "received signal" not in stop:
                return "", f"gdb cannot read the core file: {answer.strip()[-200:]}"
            return stop_sections(gdb, None, stop, maps=core_maps(core)), None
    except GdbError as error:
        return "", str(error)


# The core file itself.
NO_LIMIT = "the limit of core files is 0: ulimit -c unlimited, or watch --core"
_PATTERN, _USES_PID = "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/core_uses_pid"
_ASK_S = 60.0
# systemd writes the core after the program has gone.
_WRITING_S = 20.0


@record
class CoreFile:
    """``path`` is the file, ``why`` says why there is none. A ``made`` file is a copy of ours."""

    path: str | None = None
    why: str = ""
    made: bool = False


def find_core(watched: WatchedProgram, environ: Mapping[str, str], *, room: str) -> CoreFile:
    """The core of the watched program; ``room`` is a folder for a copy of it."""
    if not isinstance(watched.ending, Signalled):
        return CoreFile(why="it was not ended by a signal")
    pattern = read_core_pattern(read_proc_text(_PATTERN), read_proc_text(_USES_PID))
    if not watched.ending.core_dumped:
        return CoreFile(why=_why_none(watched, pattern))
    if pattern.kind == FILE:
        return _file(watched, pattern)
    if pattern.kind == SYSTEMD:
        return _from_systemd(watched, environ, room)
    taken = f"{pattern.text} takes core files here"
    if pattern.kind == APPORT:
        taken = "apport takes core files here (/var/crash, only for packages of the distribution)"
    return CoreFile(why=f"{taken}; sysctl -w kernel.core_pattern=core.%p")


def _why_none(watched: WatchedProgram, pattern: CorePattern) -> str:
    limit = watched.seen.core_limit or str(resource.getrlimit(resource.RLIMIT_CORE)[0])
    if isinstance(watched.ending, Signalled) and watched.ending.name in _WITHOUT_CORE:
        return f"{watched.ending.name} leaves none"
    if pattern.kind == NONE:
        return "core files are disabled here: sysctl -w kernel.core_pattern=core.%p"
    if limit == "0":
        return NO_LIMIT
    return "the kernel wrote none: no space or no permission to write, or the program forbids it (PR_SET_DUMPABLE)"


_WITHOUT_CORE = frozenset({"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2"})


def _file(watched: WatchedProgram, pattern: CorePattern) -> CoreFile:
    cwd = watched.seen.cwd or current_directory()
    facts = {"p": str(watched.pid), "P": str(watched.pid), "u": str(os.getuid()), "g": str(os.getgid())}
    facts |= {"h": os.uname().nodename, "s": str(watched.status & 0x7F if watched.status is not None else "")}
    made: dict[str, float] = {}
    for path in glob.glob(core_glob(pattern, facts, cwd)):  # noqa: PTH207 - any path
        with suppress(OSError):
            status = Path(path).stat()
            if stat.S_ISREG(status.st_mode) and status.st_mtime >= watched.started - 1:
                made[path] = status.st_mtime
    if not made:
        return CoreFile(why=f"the kernel wrote one, but not where {pattern.text or 'core.PID'} says, relative to {cwd}")
    return CoreFile(path=max(made, key=made.__getitem__))


def _from_systemd(watched: WatchedProgram, environ: Mapping[str, str], room: str) -> CoreFile:
    program = shutil.which("coredumpctl", path=environ.get("PATH") or os.defpath)
    if program is None:
        return CoreFile(
            why="systemd keeps core files here, and coredumpctl is not installed; apt-get install systemd-coredump"
        )
    target = f"{room}/core"
    deadline = time.monotonic() + _WRITING_S
    while True:
        try:
            done = subprocess.run(
                (program, "--quiet", "--output", target, "dump", f"COREDUMP_PID={watched.pid}"),
                capture_output=True,
                timeout=_ASK_S,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return CoreFile(why=f"coredumpctl printed nothing: {type(error).__name__}")
        if done.returncode == 0 and Path(target).is_file():
            return CoreFile(path=target, made=True)
        answer = done.stderr.decode("utf-8", "replace").strip()[-200:]
        if ("No coredumps found" not in answer and "not yet" not in answer) or time.monotonic() >= deadline:
            return CoreFile(why=f"coredumpctl: {answer or 'no core file is kept'}")
        time.sleep(0.5)


def examine_core(watched: WatchedProgram, environ: Mapping[str, str], room: str) -> WatchedProgram:
    """The watched program with its core file, and with the sections that gdb reads in it."""
    core = find_core(watched, environ, room=room)
    if core.path is None:
        return replace(watched, no_core=core.why)

    output, problem = core_sections(core.path, watched.seen.exe, environ)
    return replace(watched, core=None if core.made else core.path, debugger_output=output, debugger_problem=problem)
