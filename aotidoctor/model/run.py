"""Describe a run: a request to a child process and its outcome, or a watched program and its end.

Also what the runner and the worker have to agree on besides requests and answers, and the trace: which compiled calls a
run made, in order, written by the stubs of the call trace however the run ends.
"""

from __future__ import annotations

import enum
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from aotidoctor.model.record import JsonObject, record

if TYPE_CHECKING:
    from aotidoctor.model.jobs import Payload


# What the runner and the worker agree on.
BEHIND = "--behind"
"""Among the modules that the warm worker imports: those after this word are not needed by the first run."""

RUN_VARIABLE = "AOTIDOCTOR_RUN"
"""The environment variable by which everything that a run started is found; its value is the run's own."""

RUNNER_VARIABLE = "AOTIDOCTOR_RUNNER"
"""The environment variable that chooses the portable runner, by ``portable``."""

STACKS_SIGNAL = int(getattr(signal, "SIGRTMAX", 64)) - 3
"""The parent sends it at a timeout: faulthandler then writes the Python stacks to stderr."""

NO_TORCH = 120
"""Exit status: the job never began."""

NO_CHANNEL = 121
"""Exit status: the side channel could not be written."""

PRIVATE_PREFIX = "aotidoctor-"
"""The beginning of the names of our own directories in the user's TMPDIR."""

DEFAULT_TMP = "/tmp"  # noqa: S108 - where the loader, C++ and Python go by themselves
"""The folder for temporary files where TMPDIR is not set."""

TRACE_FILE = "trace"
"""In the run's directory: the ring that the call trace writes to."""


def portable(environ: Mapping[str, str]) -> bool:
    """Whether children are run without what only Linux has."""
    return not sys.platform.startswith("linux") or environ.get(RUNNER_VARIABLE) == "portable"


# The trace of compiled calls.
_KERNEL = re.compile(r"(?:cpp|triton)_\w+")
# Calls that compute; the other ``aoti_torch_*`` allocate, look at handles, or give memory back.
_EXTERN = re.compile(r"aoti_torch_(?:(?:cpu|cuda|mps|xpu)_\w+|addmm_out|mm_out|bmm_out|scatter\w*|index_put_out)")
_CUSTOM = frozenset({"aoti_torch_proxy_executor_call_function", "aoti_torch_call_dispatcher"})


class CallKind(enum.Enum):
    """Kind of the code that does the work of a call."""

    KERNEL = "kernel"
    EXTERN = "extern"
    CUSTOM = "custom"
    LAUNCH = "launch"
    RUNTIME = "runtime"


def call_kind(symbol: str) -> CallKind:
    """The kind of call that a symbol of the package's PLT is."""
    if symbol in _CUSTOM:
        return CallKind.CUSTOM
    if _KERNEL.fullmatch(symbol):
        return CallKind.KERNEL
    if symbol.startswith("cuLaunch"):
        return CallKind.LAUNCH
    return CallKind.EXTERN if _EXTERN.fullmatch(symbol) else CallKind.RUNTIME


@record
class TracedCall:
    """One call that was entered.

    ``symbol`` is the function (``cpp_fused_add_0``, ``aoti_torch_cpu_addmm_out``). ``argument`` is its second integer
    argument: of a proxy-executor call the index of the extern node. ``at`` is in seconds since the first traced call.
    """

    symbol: str
    argument: int
    at: float

    @property
    def kind(self) -> CallKind:
        """Kernel, extern, custom operator, launch or runtime bookkeeping."""
        return call_kind(self.symbol)


@record
class Trace:
    """The last calls of a run, oldest first.

    ``total`` counts all calls, more than ``calls`` holds when the ring was overwritten. ``slots`` is the number of PLT
    slots that were pointed at stubs. ``marks`` are the counts at which the first, second... call of the model began.
    ``problem`` says why there is no trace (None when there is one). ``stamp`` is the cost of one record in seconds.
    """

    calls: tuple[TracedCall, ...] = ()
    total: int = 0
    slots: int = 0
    stamp: float = 0.0
    marks: tuple[int, ...] = ()
    problem: str | None = None

    def of_run(self, number: int) -> tuple[TracedCall, ...]:
        """The calls that call ``number`` of the model (from 1) made, as far as they are stored."""
        if not 1 <= number <= len(self.marks):
            return ()
        skipped = self.total - len(self.calls)
        begin = max(0, self.marks[number - 1] - skipped)
        end = self.marks[number] - skipped if number < len(self.marks) else len(self.calls)
        return self.calls[begin : max(begin, end)]

    @property
    def last(self) -> TracedCall | None:
        """The call entered last: where a crash, an exception or a hang is. None when nothing was traced."""
        return self.calls[-1] if self.calls else None


@record
class Request:
    """A request to a child: ``job`` names a module of ``aotidoctor.worker``, ``payload`` is its argument (``jobs``).

    ``env`` holds changes only (None unsets). ``fresh`` asks for a new interpreter; otherwise the runner may fork the
    warm worker. ``timeout`` in seconds of wall clock, ``memory_limit`` in bytes of address space. ``debugger`` asks for
    native stacks: a debugger watches the child and tells where it died, or where it was when its time was up.
    ``stacks`` asks for the second only: no debugger is near while the child runs. ``wrapper`` is a command that the
    interpreter is started under (a sanitizer); what it writes to the file ``tool.log`` is kept. ``gpu_core`` asks for
    the GPU's core dump, in the file ``gpu.core``, to be read by cuda-gdb after the end. In the words of ``wrapper`` and
    the values of ``env``, ``{run_dir}`` stands for the directory of the run.
    """

    probe: str
    job: str
    payload: Payload
    env: Mapping[str, str | None] = field(default_factory=dict)
    fresh: bool = False
    timeout: float = 60.0
    memory_limit: int | None = None
    purpose: str = ""
    debugger: bool = False
    stacks: bool = False
    wrapper: tuple[str, ...] = ()
    gpu_core: bool = False


@record
class Exited:
    """The process ended by itself. ``done`` tells whether the worker wrote its done-marker before."""

    code: int
    done: bool


@record
class Signalled:
    """The process was ended by a signal; ``name`` like ``SIGSEGV``."""

    signal: int
    name: str
    core_dumped: bool = False


@record
class TimedOut:
    """No end within ``limit`` seconds; the process group was killed."""

    limit: float


@record
class OutOfMemory:
    """Killed for memory; ``reason`` says how that is known (cgroup counter, limit)."""

    reason: str


@record
class NotStarted:
    """There was no process, or torch could not be imported in it; ``reason`` says why."""

    reason: str


Ending = Exited | Signalled | TimedOut | OutOfMemory | NotStarted


@record
class ChildError:
    """A Python exception that the worker caught: type name, message, traceback text."""

    type: str
    message: str
    traceback: str = ""


@record
class Outcome:
    """The outcome of one child run.

    ``stage`` is the last stage the worker entered: ``start``, ``import``, ``attach``, ``setup``, ``inputs``, ``load``,
    ``run1``, ``run2``..., ``scan``, ``done``. ``stages`` maps each finished stage to its seconds. ``result`` is the
    job's JSON (empty when it never got there; see ``answers``), ``malformed`` says which parts of it were left out, as
    they are not what they should be. Tails are the last 16 KiB, decoded with replacement; ``*_bytes`` are full sizes.
    ``trace`` are the compiled calls it made, None where none were asked for. ``debugger_output`` is what the debugger
    printed, in sections (``=== name``), and at a time limit what /proc says of the threads; ``debugger_problem`` is why
    there was no debugger (None when there was one or none was asked for). ``tool_output`` is the beginning of what the
    request's ``wrapper`` wrote.
    """

    id: str
    request: Request
    ending: Ending
    stage: str
    error: ChildError | None = None
    result: JsonObject = field(default_factory=dict)
    malformed: tuple[str, ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stdout_tail: str = ""
    stderr_tail: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    seconds: float = 0.0
    argv: tuple[str, ...] = ()
    forked: bool = False
    took_effect: bool | None = None
    took_effect_why: str = ""
    peak_rss: int | None = None
    trace: Trace | None = None
    debugger_output: str = ""
    debugger_problem: str | None = None
    tool_output: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the child ended by itself, wrote its done-marker, and no exception was caught in it."""
        return isinstance(self.ending, Exited) and self.ending.done and self.error is None


class StreamKind(enum.Enum):
    """Kind of the file behind a stream of the program, which decides how it is read."""

    TERMINAL = "a terminal"
    PIPE = "a pipe"
    SOCKET = "a socket"
    FILE = "a file"
    DEVICE = "a device"
    CLOSED = "closed"


@record
class Stream:
    """Output of a program on ``stdout``, ``stderr``, or ``output`` where both lead to the same place.

    ``head`` and ``tail`` are all that was kept of ``size`` bytes; the tail begins where the head ends, or later.
    ``problem`` says why nothing, or not all, could be read.
    """

    name: str
    kind: StreamKind
    head: bytes = b""
    tail: bytes = b""
    size: int = 0
    problem: str | None = None

    @property
    def left_out(self) -> int:
        """Bytes between head and tail that were dropped."""
        return max(0, self.size - len(self.head) - len(self.tail))

    @property
    def text(self) -> bytes:
        """The stored output as one text; a line says how much is missing."""
        if not self.left_out:
            return self.head + self.tail
        return b"%s\n[%d bytes were not kept]\n%s" % (self.head, self.left_out, self.tail)


@record
class ProcessFacts:
    """Facts from /proc about a program and all that it started.

    ``opened`` are package files that a process had open, ``named`` those in a command line, ``unpacked`` the folders
    ``.../data/aotinductor/MODEL`` that code was mapped from, ``left`` such folders that appeared in the temporary
    directory meanwhile. ``libraries`` are libtorch's files. ``cwd`` and ``exe`` are the program's. ``holder`` is the
    process that code of a package was last mapped in.
    """

    opened: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    unpacked: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    cwd: str | None = None
    exe: str | None = None
    core_limit: str | None = None
    processes: int = 0
    looks: int = 0
    holder: int | None = None


@record
class ProgramToWatch:
    """A program to start. ``env`` are changes; ``limit`` in seconds. ``core`` raises the soft limit of core files."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    limit: float | None = None
    core: bool = False


@record
class WatchedProgram:
    """A program that has ended.

    ``status`` is the wait status (None: it never ran), ``asked`` the signals that somebody sent to end it. ``core`` is
    the file, ``no_core`` why there is none. ``debugger_output`` and ``debugger_problem`` are as in ``Outcome``.
    ``exec_error`` is set where there was no program to start; ``refused`` is then the status that a shell would give.
    """

    argv: tuple[str, ...]
    ending: Ending
    status: int | None = None
    pid: int = 0
    seconds: float = 0.0
    started: float = 0.0
    peak_rss: int | None = None
    streams: tuple[Stream, ...] = ()
    seen: ProcessFacts = field(default_factory=ProcessFacts)
    asked: tuple[int, ...] = ()
    core: str | None = None
    no_core: str = ""
    debugger_output: str = ""
    debugger_problem: str | None = None
    oom: str | None = None
    exec_error: str | None = None
    refused: int = 127
