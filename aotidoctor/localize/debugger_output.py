"""Parse what the runner's debugger printed: sections of gdb's text, py-spy's, and the one from /proc.

gdb's frames have many notations: ``#3 0x… in f<a, b>(c const&) () from lib.so`` (no debug information), ``#4 0x… in g
(...) at file.cpp:12`` (with it, perhaps inlined), ``?? ()`` and ``<signal handler called>``. Frames behind an unknown
function of a library that was not read are guesses of gdb's, and are left out. Addresses are looked up in the lines of
/proc/PID/maps. An operator in Python has no frame of its own in C; its frames are those that ``faulthandler`` wrote to
stderr.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from aotidoctor.model.localization import Frame
from aotidoctor.model.record import record

# Addresses.
_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+ *(.*)")
# A null pointer with an offset: the first page, and some more that Linux never maps.
_NULL_PAGE = 1 << 16
_NEAR_STACK = 1 << 20
_NEAR = 1 << 28
# SI_KERNEL: an address that the processor cannot form, which Linux does not report.
_NO_ADDRESS = 128


@record
class MemoryRegion:
    """One mapping, ``high`` exclusive. ``perms`` are like ``r-xp``; ``path`` may be ``[heap]``, or empty: anonymous."""

    low: int
    high: int
    perms: str
    path: str

    @property
    def name(self) -> str:
        """The words for it in a sentence."""
        match self.path:
            case "":
                return "an anonymous mapping"
            case "[heap]":
                return "the heap"
            case "[stack]":
                return "the stack"
            case path:
                return path.rpartition("/")[2]


def read_regions(text: str) -> tuple[MemoryRegion, ...]:
    """The lines in order of address; what is no such line is left out."""
    found = (_LINE.match(line) for line in text.splitlines())
    regions = (
        MemoryRegion(low=int(one[1], 16), high=int(one[2], 16), perms=one[3], path=one[4].strip())
        for one in found
        if one
    )
    return tuple(sorted(regions, key=lambda region: region.low))


def region_of(address: int, regions: Sequence[MemoryRegion]) -> MemoryRegion | None:
    """The mapping that holds the address."""
    return next((region for region in regions if region.low <= address < region.high), None)


def fault_target(address: int, code: int, stack_pointer: int | None, regions: Sequence[MemoryRegion]) -> str:
    """A description of the address of a memory fault; ``code`` is the kernel's ``si_code``."""
    if code == _NO_ADDRESS:
        return "no possible address: a pointer that was overwritten or never set"
    if address < _NULL_PAGE:
        return "the null page: a null pointer" + (f" plus {address} bytes" if address else "")
    inside = region_of(address, regions)
    if _is_stack_overflow(address, inside, stack_pointer, regions):
        return "below the end of the stack: it has overflowed"
    if inside is not None:
        return f"inside {inside.name}, which allows {inside.perms[:3]}"
    before = max((region for region in regions if region.high <= address), key=lambda one: one.high, default=None)
    after = min((region for region in regions if region.low > address), key=lambda one: one.low, default=None)
    past = address - before.high if before is not None else _NEAR
    short = after.low - address if after is not None else _NEAR
    if before is not None and past < _NEAR and past <= short:
        how_far = f"{past} bytes" if past else "right"
        return f"unmapped, {how_far} beyond the end of {before.name}"
    if after is not None and short < _NEAR:
        return f"unmapped, {short} bytes before the start of {after.name}"
    return "unmapped, with nothing near"


def _is_stack_overflow(
    address: int, inside: MemoryRegion | None, stack_pointer: int | None, regions: Sequence[MemoryRegion]
) -> bool:
    """Close to the stack pointer, and not on pages that can be written to."""
    if stack_pointer is None or abs(address - stack_pointer) > _NEAR_STACK:
        return False
    above = next((region for region in regions if region.high > address and "w" in region.perms), None)
    below_stack = above is not None and above.low <= stack_pointer + _NEAR_STACK
    return below_stack and (inside is None or "w" not in inside.perms)


# Stacks.
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
class StopReason:
    """The signal that stopped the child. ``address`` and ``target`` are set for memory faults only."""

    signal: str
    frames: tuple[Frame, ...]
    address: int | None = None
    target: str | None = None
    instruction: str | None = None


@record
class ThreadStack:
    """The stack of one thread; ``tid`` is None where the debugger did not name it."""

    tid: int | None
    frames: tuple[Frame, ...]


@record
class KernelTask:
    """A thread as /proc shows it: ``state`` is a letter, ``call`` the number of its system call or ``running``."""

    tid: int
    state: str
    cpu: float
    wchan: str
    call: str
    name: str


@record
class Backtrace:
    """All that was printed; empty parts were not. ``ended``: the child ended without a stop."""

    stop: StopReason | None = None
    threads: tuple[ThreadStack, ...] = ()
    tasks: tuple[KernelTask, ...] = ()
    machine: str | None = None
    ended: bool = False


def read_backtrace(text: str) -> Backtrace:
    """The parts of ``Outcome.debugger_output``; text that is none of ours gives an empty one."""
    sections = _SECTION.split(text)
    parts = dict(zip(sections[1::2], sections[2::2], strict=True))
    regions = read_regions(parts.get("maps", ""))
    read = frozenset(parts.get("read", "").splitlines())
    machine = _MACHINE.search(parts.get("tasks", ""))
    threads = [
        ThreadStack(tid=int(head[2]) if head[2] else None, frames=tuple(_frames(body, regions, read)))
        for head, body in _by_head(_THREAD, parts.get("stacks", ""))
    ]
    spied = [
        ThreadStack(tid=int(head[1]) if head[1].isdigit() else None, frames=tuple(_spied_frames(body)))
        for head, body in _by_head(_SPY_THREAD, parts.get("py-spy", "") if not threads else "")
    ]
    tasks = tuple(
        KernelTask(tid=int(one[1]), state=one[2], cpu=float(one[3]), wchan=one[4], call=one[5], name=one[6].strip())
        for one in _TASK.finditer(parts.get("tasks", ""))
    )
    return Backtrace(
        stop=_stop(parts, regions, read),
        threads=tuple(threads or spied),
        tasks=tasks,
        machine=machine[1] if machine else None,
        ended="end" in parts,
    )


def _stop(parts: dict[str, str], regions: Sequence[MemoryRegion], read: Collection[str]) -> StopReason | None:
    signal = _SIGNAL.search(parts.get("stop", ""))
    if signal is None:
        return None
    values = {
        name: int(value, 0) for name, value in _NUMBER.findall(parts.get("signal", "") + parts.get("registers", ""))
    }
    address, code = values.get("addr"), values.get("code", 0)
    faulted = signal[1] in _FAULTS and code > 0 and address is not None
    return StopReason(
        signal=signal[1],
        frames=tuple(_frames(parts.get("stack", ""), regions, read)),
        address=address if faulted else None,
        target=fault_target(address, code, values.get("sp"), regions) if faulted and address is not None else None,
        instruction=parts.get("instruction", "").strip().removeprefix("=> ").replace("\t", " ") or None,
    )


def _frames(text: str, regions: Sequence[MemoryRegion], read: Collection[str]) -> Iterator[Frame]:
    for found in _FRAME.finditer(text):
        address, label = found[2], found[3].strip()
        place = _PLACE.match(label)
        call = _CALL.match(place["rest"] if place else label)
        inside = region_of(int(address, 16), regions) if address else None
        mapped = inside.path if inside is not None and inside.path.startswith("/") else None
        frame = Frame(
            index=int(found[1]),
            function=call["function"] if call else label,
            file=place["file"] if place else None,
            line=int(place["line"]) if place and place["line"] else None,
            # gdb's own name first: the map has what a link points to.
            library=(place["library"] if place else None) or mapped,
        )
        yield frame
        # A jump to nowhere has no library, and its caller is on top of the stack: that one is no guess.
        jumped = frame.index == 0 and frame.library is None
        if frame.function == UNKNOWN and frame.library not in read and not jumped:
            break


def _by_head(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """Each head with what stands below it."""
    heads = list(pattern.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [(head, text[head.end() : end]) for head, end in zip(heads, ends, strict=False)]


def _spied_frames(text: str) -> Iterator[Frame]:
    """A native frame names its library, or a file and line where there is debug information; a Python frame a file."""
    for index, found in enumerate(_SPY_FRAME.finditer(text)):
        is_library = found["line"] is None or re.search(r"\.so(?:\.|$)", found["place"]) is not None
        yield Frame(
            index=index,
            function=found["function"],
            file=None if is_library else found["place"],
            line=int(found["line"]) if found["line"] and not is_library else None,
            library=found["place"] if is_library else None,
        )


# Python frames of ``faulthandler``.
_PYTHON_BLOCK = re.compile(
    r"^(?:Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first\):\n((?:  .*\n?)+)", re.MULTILINE
)
_PYTHON_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_OURS = "/aotidoctor/worker/"
# Helpers of Python's and PyTorch's own: the operator is whoever called them.
_HELPERS = re.compile(r"/torch/|/lib/python3[\d.]*/(?!(?:site|dist)-packages/)")


def python_frames(stderr: str) -> tuple[Frame, ...]:
    """Frames of the last stack of the thread that called the model, innermost first; empty where there is none."""
    blocks = [block for block in _PYTHON_BLOCK.findall(stderr) if _OURS in block]
    if not blocks:
        return ()
    found = enumerate(_PYTHON_FRAME.finditer(blocks[-1]))
    return tuple(
        Frame(index=index, function=one["function"], file=one["file"], line=int(one["line"])) for index, one in found
    )


def operator_frame(stderr: str) -> Frame | None:
    """The frame of an operator in Python that the model had called; None when the model was in compiled code."""
    frames = python_frames(stderr)
    call = next((frame for frame in frames if frame.function == "__call__" and _OURS in (frame.file or "")), None)
    if call is None:
        return None
    inside = frames[: call.index]
    return next((frame for frame in inside if not _HELPERS.search(frame.file or "")), None)
