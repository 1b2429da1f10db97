"""Reads what the runner's debugger printed: sections of gdb's text, py-spy's, and the one from /proc.

gdb's frames have many faces: ``#3 0x… in f<a, b>(c const&) () from lib.so`` (no debug information), ``#4 0x… in g (...)
at file.cpp:12`` (with it, perhaps inlined), ``?? ()`` and ``<signal handler called>``. Frames behind an unknown
function of a library that was not read are guesses of gdb's, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from aotidoctor.localize.addresses import Region, fault_target, read_regions, region_of
from aotidoctor.model.localization import Frame
from aotidoctor.model.record import record

UNKNOWN = "??"
_SECTION = re.compile(r"^=== ([\w-]+)$", re.MULTILINE)
_FRAME = re.compile(r"^#(\d+) +(?:(0x[0-9a-f]+) in )?(.+)$", re.MULTILINE)
_PLACE = re.compile(r"^(?P<rest>.*\)) (?:from (?P<library>[^()\n]+)|at (?P<file>[^()]+):(?P<line>\d+))$")
# Greedy: a name may hold parentheses of its own, and the arguments come last.
_CALL = re.compile(r"^(?P<function>.+) \((?:[^()]|\([^()]*\))*\)$")
_SIGNAL = re.compile(r"received signal (SIG\w+)")
_NUMBER = re.compile(r"\b(\w+)=(-?(?:0x)?[0-9a-f]+)\b")
_THREAD = re.compile(r"^Thread (\d+) \((?:.*?LWP (\d+))?.*$", re.MULTILINE)
_SPY_THREAD = re.compile(r"^Thread (?:0x)?([0-9A-Fa-f]+) \([^)]*\).*$", re.MULTILINE)
_SPY_FRAME = re.compile(r"^    (?P<function>.+) \((?P<place>[^()]+?)(?::(?P<line>\d+))?\)$", re.MULTILINE)
_TASK = re.compile(r"^tid=(\d+) state=(\S+) cpu=([\d.]+) wchan=(\S+) syscall=(\S+) name=(.*)$", re.MULTILINE)
_MACHINE = re.compile(r"^machine=(\S+)$", re.MULTILINE)
# A memory fault proper; a signal that a program sent (code <= 0) has no address.
_FAULTS = ("SIGSEGV", "SIGBUS")


@record
class Stop:
    """The signal that stopped the child. ``address`` and ``target`` are set for memory faults only."""

    signal: str
    frames: tuple[Frame, ...]
    address: int | None = None
    target: str | None = None
    instruction: str | None = None


@record
class Thread:
    """The stack of one thread; ``tid`` is None where the debugger did not tell."""

    tid: int | None
    frames: tuple[Frame, ...]


@record
class Task:
    """A thread as /proc shows it: ``state`` is a letter, ``call`` the number of its system call or ``running``."""

    tid: int
    state: str
    cpu: float
    wchan: str
    call: str
    name: str


@record
class Backtrace:
    """All that was printed; empty parts were not printed. ``ended`` says that the child ended without a stop."""

    stop: Stop | None = None
    threads: tuple[Thread, ...] = ()
    tasks: tuple[Task, ...] = ()
    machine: str | None = None
    ended: bool = False


def read_backtrace(text: str) -> Backtrace:
    """The parts of ``Outcome.debugger_output``; text that is none of ours gives an empty one."""
    parts = _sections(text)
    regions = read_regions(parts.get("maps", ""))
    read = frozenset(parts.get("read", "").splitlines())
    machine = _MACHINE.search(parts.get("tasks", ""))
    return Backtrace(
        stop=_stop(parts, regions, read),
        threads=_threads(parts.get("stacks", ""), regions, read) or _spied(parts.get("py-spy", "")),
        tasks=tuple(_task(one) for one in _TASK.finditer(parts.get("tasks", ""))),
        machine=machine[1] if machine else None,
        ended="end" in parts,
    )


def _sections(text: str) -> dict[str, str]:
    found = _SECTION.split(text)
    return dict(zip(found[1::2], found[2::2], strict=True))


def _stop(parts: dict[str, str], regions: Sequence[Region], read: Collection[str]) -> Stop | None:
    signal = _SIGNAL.search(parts.get("stop", ""))
    if signal is None:
        return None
    values = {
        name: int(value, 0) for name, value in _NUMBER.findall(parts.get("signal", "") + parts.get("registers", ""))
    }
    address, code = values.get("addr"), values.get("code", 0)
    faulted = signal[1] in _FAULTS and code > 0 and address is not None
    return Stop(
        signal=signal[1],
        frames=_frames(parts.get("stack", ""), regions, read),
        address=address if faulted else None,
        target=fault_target(address, code, values.get("sp"), regions) if faulted and address is not None else None,
        instruction=parts.get("instruction", "").strip().removeprefix("=> ").replace("\t", " ") or None,
    )


def _threads(text: str, regions: Sequence[Region], read: Collection[str]) -> tuple[Thread, ...]:
    parts = _by_head(_THREAD, text)
    return tuple(
        Thread(tid=int(head[2]) if head[2] else None, frames=_frames(body, regions, read)) for head, body in parts
    )


def _frames(text: str, regions: Sequence[Region], read: Collection[str]) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    for found in _FRAME.finditer(text):
        frame = _frame(int(found[1]), found[2], found[3].strip(), regions)
        frames.append(frame)
        # A jump to nowhere has no library, and its caller is on top of the stack: that one is no guess.
        jumped = frame.index == 0 and frame.library is None
        if frame.function == UNKNOWN and frame.library not in read and not jumped:
            break
    return tuple(frames)


def _frame(index: int, address: str | None, text: str, regions: Sequence[Region]) -> Frame:
    place = _PLACE.match(text)
    call = _CALL.match(place["rest"] if place else text)
    inside = region_of(int(address, 16), regions) if address else None
    mapped = inside.path if inside is not None and inside.path.startswith("/") else None
    return Frame(
        index=index,
        function=call["function"] if call else text,
        file=place["file"] if place else None,
        line=int(place["line"]) if place and place["line"] else None,
        # gdb's own name first: the map has what a link points to.
        library=(place["library"] if place else None) or mapped,
    )


def _spied(text: str) -> tuple[Thread, ...]:
    parts = _by_head(_SPY_THREAD, text)
    return tuple(
        Thread(tid=int(head[1]) if head[1].isdigit() else None, frames=_spied_frames(body)) for head, body in parts
    )


def _by_head(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """Each head with what stands below it."""
    heads = list(pattern.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [(head, text[head.end() : end]) for head, end in zip(heads, ends, strict=False)]


def _spied_frames(text: str) -> tuple[Frame, ...]:
    """A native frame names its library, or a file and line where there is debug information; a Python frame a file."""
    frames = []
    for index, found in enumerate(_SPY_FRAME.finditer(text)):
        is_library = found["line"] is None or re.search(r"\.so(?:\.|$)", found["place"]) is not None
        frames.append(
            Frame(
                index=index,
                function=found["function"],
                file=None if is_library else found["place"],
                line=int(found["line"]) if found["line"] and not is_library else None,
                library=found["place"] if is_library else None,
            )
        )
    return tuple(frames)


def _task(found: re.Match[str]) -> Task:
    return Task(
        tid=int(found[1]), state=found[2], cpu=float(found[3]), wchan=found[4], call=found[5], name=found[6].strip()
    )
