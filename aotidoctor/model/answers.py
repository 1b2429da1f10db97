"""What the worker answers: records of the parts of a result, each part named as its field.

A part is handed over as soon as it is known, so that a crash keeps it: every field has a value for "not told". What
comes back is data from a process that may have been damaged: ``sound`` keeps the parts that are what they should be,
and names the place of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.records import RecordError, from_json

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor that the child looked at; counts are of elements. A constant has a ``name``, anything else a ``path``.

    None is what cannot be told: shapes of what is not strided, values of what has none, ``min`` where all is NaN.
    ``changed`` is whether a call wrote to it; ``aliases_*`` are the numbers of inputs and outputs in the same memory.
    """

    path: str = ""
    name: str = ""
    dtype: str = ""
    shape: tuple[int | None, ...] | None = None
    stride: tuple[int | None, ...] | None = None
    device: str | None = None
    nan: int | None = None
    inf: int | None = None
    min: float | None = None
    max: float | None = None
    sha256: str | None = None
    changed: bool | None = None
    aliases_inputs: tuple[int, ...] = ()
    aliases_outputs: tuple[int, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape; 0 for a size that cannot be told, empty where there is none."""
        return tuple(size or 0 for size in self.shape or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """Calls of a model: ``outputs`` by call, ``rss`` in bytes after each."""

    outputs: tuple[tuple[Tensor, ...], ...] = ()
    inputs: tuple[Tensor, ...] = ()
    constants: tuple[Tensor, ...] = ()
    rss: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Bytes of a GPU."""

    free: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """Whether what a request changes acted. ``applied`` are the steps of its treatment, in words."""

    env_took_effect: Mapping[str, bool] | None = None
    heap_checks: bool | None = None
    memory_filled: bool | None = None
    threads: int | None = None
    applied: tuple[str, ...] = ()
    cuda_memory: DeviceMemory | None = None
    variant: str | None = None
    compile_cache: bool | None = None
    load_parts: Mapping[str, float] | None = None
    last_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One output of two calls."""

    path: str = ""
    agrees: bool = False
    what: str | None = None
    max_abs_diff: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsCompared:
    """The first ``rows`` of ``of`` rows alone and among the others; ``repeatable``: two whole calls are equal."""

    rows: int
    of: int
    repeatable: bool = False
    agrees: bool = False
    outputs: tuple[Compared, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadsCompared:
    """Two thread counts; of each, whether its calls are equal. ``same`` are the bits of both, ``agrees`` the values."""

    threads: tuple[int, ...] = ()
    repeatable: tuple[bool, ...] = ()
    same: bool = False
    agrees: bool = False
    outputs: tuple[Compared, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Calls that differ in one thing."""

    sub_batch: RowsCompared | None = None
    against_threads: ThreadsCompared | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A computing call of a CUDA package: call ``number`` of call ``run`` of the model."""

    symbol: str = ""
    number: int = 0
    run: int = 0
    argument: int | None = None
    kernel: str | None = None
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    shared: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailure:
    """The first answer of the driver that was an error: after ``call``, found ``before`` the next one."""

    code: int = 0
    name: str | None = None
    text: str | None = None
    call: Launch | None = None
    before: Launch | None = None
    run: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """A run with the driver's answer after each launch. ``launch_trace`` is there once the calls are hooked."""

    launch_trace: Mapping[str, int] | None = None
    launch_last: Launch | None = None
    launch_count: int | None = None
    launch_failure: LaunchFailure | None = None
    launch_problem: LaunchFailure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a registered operator."""

    name: str
    has_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What is registered under a name; all else is of the wanted overload: ``schema`` is its text, None without one."""

    registered: bool = False
    schema: str | None = None
    arguments: tuple[Argument, ...] = ()
    returns: int | None = None
    kernel: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Operators by the names that were asked for."""

    ops: Mapping[str, Operator] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCall:
    """A call of an operator: node ``index`` of the package, its arguments in ``file``."""

    index: int = -1
    target: str = ""
    file: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCalls:
    """``by`` hooks or the reference; ``skipped`` have a reason instead of a file."""

    by: str = ""
    captured: tuple[SavedCall, ...] = ()
    skipped: tuple[SavedCall, ...] = ()
    unavailable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCall:
    """One saved call made again. ``outputs`` None: it did not return. ``again`` are the digests of a second call."""

    file: str = ""
    bad: str | None = None
    arguments: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] | None = None
    digests: tuple[str | None, ...] = ()
    again: tuple[str | None, ...] = ()
    writes: tuple[str, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    clean: bool = False
    generator: bool = False
    fake: tuple[Tensor, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAlone:
    """One operator, called by itself. ``opcheck`` maps PyTorch's tests to ``SUCCESS`` or their text."""

    calls: tuple[OperatorCall, ...] = ()
    returned: bool = False
    tags: tuple[str, ...] = ()
    opcheck: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenWeight:
    """A weight that a set-up loads; ``same_as`` are other names of the same memory."""

    name: str
    same_as: tuple[str, ...] = ()
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenWeights:
    """What a set-up loaded; ``after_load`` tells whether it has that function."""

    loaded_constants: tuple[GivenWeight, ...] = ()
    after_load: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of an emulation.

    ``kind`` is ``out-of-bounds``, ``misaligned``, ``use-after-free``, ``uninitialized``, ``race``, ``duplicate-index``,
    ``int32-overflow``, ``device-assert``, ``nan``, ``inf`` or ``operator-refused``. ``launch`` counts launches from 1,
    None for what an operator did; ``line`` is the line of the kernel's own text, ``wrapper_line`` that of the wrapper.
    ``program`` is its place in the grid and ``lane`` the element of its block, None where every program has the same.
    ``buffer`` is the wrapper's name, ``offset`` and ``extent`` count elements as the kernel reads them. ``count`` is
    how many lanes.
    """

    kind: str
    launch: int | None = None
    kernel: str | None = None
    line: int | None = None
    wrapper_line: int | None = None
    text: str | None = None
    grid: tuple[int, ...] = ()
    program: tuple[int, ...] | None = None
    lane: int | None = None
    access: str = ""
    argument: str | None = None
    buffer: str | None = None
    offset: int | None = None
    extent: int | None = None
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    message: str = ""
    count: int = 1
    output: str | None = None
    value: int | None = None

    @property
    def place(self) -> str:
        """``launch 3 triton_poi_fused_0, program 0, lane 5``."""
        if self.launch is None:
            return self.kernel or self.output or "the wrapper"
        parts = [f"launch {self.launch} {self.kernel}"]
        if self.program is not None:
            used = self.program if any(self.program[1:]) else self.program[:1]
            parts.append(f"program {'x'.join(map(str, used))}")
        if self.lane is not None:
            parts.append(f"lane {self.lane}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEmulated:
    """What was not carried out, and how often."""

    what: str
    why: str
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedLaunch:
    """How far one launch came, and by which way."""

    state: str | None = None
    way: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """The whole run: ``launched`` calls of kernels; ``problem`` says why nothing was emulated at all."""

    findings: tuple[Finding, ...] = ()
    not_emulated: tuple[NotEmulated, ...] = ()
    launches: tuple[EmulatedLaunch, ...] = ()
    launched: int = 0
    problem: str | None = None

    @property
    def done(self) -> int:
        """Launches that were carried out to their end."""
        return sum(one.state in ("done", "empty") for one in self.launches)

    @property
    def quick(self) -> int:
        """Launches that were looked at by their addresses alone."""
        return sum(one.way == "quick" for one in self.launches)

    @property
    def seconds(self) -> float:
        """What the launches took."""
        return sum(one.seconds for one in self.launches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulated:
    """A package carried out on the CPU."""

    emulation: Emulation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTensor:
    """A tensor that a watched call read or wrote: parameter ``name`` at ``position``.

    ``writer`` is the call that wrote it last, None for inputs and constants; a ``constant`` is not looked at. Of the
    reference, ``matches``, ``target`` and ``where`` are the node whose values are nearest, ``agrees`` whether they are
    its values and ``error`` how far off they are.
    """

    name: str = ""
    position: int | None = None
    dtype: str = ""
    shape: tuple[int | None, ...] | None = None
    nan: int | None = None
    inf: int | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    error: float | None = None
    matches: str | None = None
    target: str | None = None
    where: str | None = None
    agrees: bool | None = None
    writer: int | None = None
    constant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCall:
    """A computing call, with what it read and wrote."""

    symbol: str = ""
    argument: int | None = None
    reads: tuple[WatchedTensor, ...] = ()
    writes: tuple[WatchedTensor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedOutput:
    """An output: the call that wrote it (None: an input), and whether it has the values of a node."""

    path: str = ""
    writer: int | None = None
    agrees: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An operator of the reference and its source line."""

    target: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    """All calls of one run; ``left_out`` are those beyond the limits, ``problem`` is why there are none."""

    problem: str | None = None
    calls: tuple[WatchedCall, ...] = ()
    left_out: int = 0
    outputs: tuple[WatchedOutput, ...] = ()
    notes: tuple[str, ...] = ()
    compared: bool = False
    places: tuple[Place, ...] = ()
    decomposition_differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """The values of kernels."""

    watch: WatchedRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step that the compiler's switch can turn off: its name there, the operator, the user's line."""

    name: str = ""
    target: str | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A compile: how long it took, and its steps by subsystem."""

    seconds: float = 0.0
    switchable: Mapping[str, tuple[Step, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCut:
    """A part of a program: its operators and what they call, in order; ``problem`` says why there is no such part."""

    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    inputs: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCalled:
    """An init library: which of its functions were ``found``, and what they did."""

    found: tuple[str, ...] = ()
    handle: int | None = None
    released: bool = False


_RUN = (Called, Acted, SideBySide, Launches, GivenWeights, Watching)
ANSWERS: Mapping[str, tuple[type, ...]] = {
    "run": _RUN,
    "printed": _RUN,
    "load_time": (Acted,),
    "emulate": (Called, Acted, Emulated, Watching),
    "op_inputs": (Acted, SavedCalls),
    "op_alone": (Acted, OperatorAlone),
    "ops": (Acted, Registry),
    "recompile": (Acted, Compiled),
    "cut": (Acted, PartCut),
    "hook": (Acted, HookCalled),
}


def told(kind: type[A], result: JsonObject) -> A:
    """The parts of ``kind`` that are in the result."""
    return from_json(kind, result)


def sound(job: str, result: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """The result without the parts that are not what they should be, and where those are wrong."""
    bad = {
        name: problem
        for kind in ANSWERS.get(job, ())
        for name in sorted({item.name for item in fields(kind)} & result.keys())
        if (problem := _problem(kind, {name: result[name]})) is not None
    }
    return {name: value for name, value in result.items() if name not in bad}, tuple(bad.values())


def _problem(kind: type[A], part: JsonObject) -> str | None:
    try:
        from_json(kind, part)
    except RecordError as error:
        return str(error)
    return None
