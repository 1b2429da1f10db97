"""One child run: a value in (``Request``) and a value out (``Outcome``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.trace import Trace

if TYPE_CHECKING:
    # Of use to commands that run something only.
    from aotidoctor.model.jobs import Payload


@record
class Request:
    """What to run. ``job`` names a module of ``aotidoctor.worker``; ``payload`` is its argument (see ``jobs``).

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
    """What one child run gave.

    ``stage`` is the last stage the worker entered: ``start``, ``import``, ``attach``, ``setup``, ``inputs``, ``load``,
    ``run1``, ``run2``..., ``scan``, ``done``. ``stages`` maps each finished stage to its seconds. ``result`` is the
    job's JSON (empty when it never got there; see ``answers``), ``malformed`` says which parts of it were left out, as
    they are not what they should be. Tails are the last 16 KiB, decoded with replacement; ``*_bytes`` are
    full sizes.
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
        """Whether the child ended by itself, said that it was done, and no exception was caught in it."""
        return isinstance(self.ending, Exited) and self.ending.done and self.error is None
