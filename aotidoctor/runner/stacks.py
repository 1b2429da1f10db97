"""What is asked of gdb at a stop, as text in sections (``=== name`` on a line of its own).

``stop`` (what gdb said), ``signal`` (number, code, address), ``registers``, ``instruction``, ``stack`` (of the thread
that was stopped) or ``stacks`` (of all threads), ``read`` (libraries whose tables were read: beyond an unknown function
in another one the frames are guesses), ``maps`` (lines of /proc/PID/maps: those that the stack lies in, and
the neighbourhood of the address of a fault).

gdb cannot unwind through a library whose tables it has not read, and reading libtorch's takes seconds: so the stack is
printed again and again, each time with the one library more that the last attempt stopped at, until it reaches the
compiled model's own frame or needs nothing more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from aotidoctor.runner.gdb import Gdb

COLLECT_S = 40.0
ROUNDS = 12
DEPTH, DEPTH_OF_MANY = 64, 32
_UNKNOWN = re.compile(r"^#\d+ +(?:0x[0-9a-f]+ in )?\?\? \(.*?\)(?: from (?P<library>.+))?$", re.MULTILINE)
_MODEL = re.compile(r"AOTInductorModel::run_impl|AOTInductorModelContainerRun")
_THREAD = re.compile(r"^Thread \d+ ", re.MULTILINE)
_PC = re.compile(r"^#\d+ +(0x[0-9a-f]+) ", re.MULTILINE)
_VALUE = re.compile(r"\b(addr|pc|sp)=0x([0-9a-f]+)")
_SPECIAL = re.compile(r"([.\[\]*^$\\])")
_MANGLED = re.compile(r"(?<= in )_Z\w+(?:\.\w+)*")
# libtorch has half a million names: to demangle them all takes most of the time of reading it.
BIG = 16 * 1024 * 1024


def one_stack(gdb: Gdb, pid: int | None, stop: str, *, maps: Sequence[str] = ()) -> str:
    """All about the stop that gdb described with ``stop``; ``maps`` is the memory map where there is no process.

    Raises:
        GdbError: it ended, or took too long.
    """
    deadline = time.monotonic() + COLLECT_S
    fault = "$_siginfo._sifields._sigfault.si_addr"
    asked = {
        "signal": f'printf "signo=%d code=%d addr=0x%lx\\n", $_siginfo.si_signo, $_siginfo.si_code, (long){fault}',
        "registers": 'printf "pc=0x%lx sp=0x%lx\\n", (long)$pc, (long)$sp',
        "instruction": "x/i $pc",
    }
    said = {name: gdb.ask(command, deadline - time.monotonic()) for name, command in asked.items()}
    stack, read = _with_libraries(gdb, f"bt {DEPTH}", deadline)
    near = [int(value, 16) for _, value in _VALUE.findall(said["signal"] + said["registers"])]
    lines = maps if pid is None else _map_lines(pid)
    return sections({"stop": stop, **said, "stack": stack, "read": read, "maps": _maps(lines, _addresses(stack), near)})


def all_stacks(gdb: Gdb, pid: int) -> str:
    """The stacks of all threads of a stopped process.

    Raises:
        GdbError: it ended, or took too long.
    """
    deadline = time.monotonic() + COLLECT_S
    stacks, read = _with_libraries(gdb, f"thread apply all bt {DEPTH_OF_MANY}", deadline)
    return sections({"stacks": stacks, "read": read, "maps": _maps(_map_lines(pid), _addresses(stacks), ())})


def sections(texts: dict[str, str]) -> str:
    """One text of several named ones."""
    return "".join(f"=== {name}\n{text.strip()}\n" for name, text in texts.items())


def _with_libraries(gdb: Gdb, command: str, deadline: float) -> tuple[str, str]:
    """What the command prints in the end, and the libraries that were read for it."""
    read: set[str] = set()
    for _ in range(ROUNDS):
        stack = gdb.ask(command, deadline - time.monotonic())
        missing = {library for part in _THREAD.split(stack) if (library := _missing(part, read))}
        if not missing:
            break
        for library in sorted(missing):
            _read(gdb, library, deadline)
        read |= missing
    return _demangled(gdb, stack, deadline), "\n".join(sorted(read))


def _read(gdb: Gdb, library: str, deadline: float) -> None:
    """Read the tables of a library; those of a big one without the names in C++, of which few will be shown."""
    path = Path(library)
    big = path.is_file() and path.stat().st_size > BIG
    if big:
        gdb.ask("set demangle-style none", deadline - time.monotonic())
    gdb.ask("sharedlibrary " + _SPECIAL.sub(r"\\\1", library), deadline - time.monotonic())
    if big:
        gdb.ask("set demangle-style auto", deadline - time.monotonic())


def _demangled(gdb: Gdb, stack: str, deadline: float) -> str:
    """The stack with the names that ``_read`` left as they are in the tables."""
    for name in sorted(set(_MANGLED.findall(stack)), key=len, reverse=True):
        said = gdb.ask(f"demangle -l c++ -- {name}", deadline - time.monotonic()).strip()
        if said and "\n" not in said and not said.startswith(("Can't demangle", "Undefined")):
            stack = re.sub(re.escape(name) + r"(?![\w.])", said.replace("\\", r"\\"), stack)
    return stack


def _missing(stack: str, read: Collection[str]) -> str | None:
    """The library without which the stack cannot be read on; None when nobody needs what lies beyond."""
    # A library without names is no obstacle once its tables are read.
    unknown = next((found for found in _UNKNOWN.finditer(stack) if found["library"] not in read), None)
    if unknown is None or _MODEL.search(stack, 0, unknown.start()):
        return None
    return unknown["library"]


def _addresses(stack: str) -> list[int]:
    return [int(address, 16) for address in _PC.findall(stack)]


def _map_lines(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _maps(lines: Sequence[str], inside: Iterable[int], near: Iterable[int]) -> str:
    """Lines of the memory map: the ones that hold the addresses, and for ``near`` also those before and after."""
    spans = [tuple(int(part, 16) for part in line.split(maxsplit=1)[0].split("-")) for line in lines]
    kept = {index for index, (low, high) in enumerate(spans) if any(low <= address < high for address in inside)}
    for address in near:
        after = sum(1 for low, _ in spans if low <= address)
        kept.update(range(max(0, after - 2), min(len(spans), after + 1)))
    return "\n".join(lines[index] for index in sorted(kept))
