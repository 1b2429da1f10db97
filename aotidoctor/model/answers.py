"""Define the answers of the worker: records of the parts of a result, each part named as its field.

A part is sent as soon as it is known, so that it survives a crash: every field has a value for "not reported". An
answer comes from a process that may have been damaged: ``drop_malformed`` keeps the well-formed parts and names the
place of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeVar

from aotidoctor.model.evidence import Violation
from aotidoctor.model.localization import Emulated, Watching
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.record_json import from_json, read_fields


# A call of a model, by itself or beside another one.
@record
class ObservedTensor:
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


@record
class Called:
    """Calls of a model: ``outputs`` by call, ``rss`` in bytes after each.

    ``allocated_peak`` is how much of PyTorch's allocator the last call held at most, in bytes. ``unseen_exception`` is
    that of an operator whose status the code did not look at: the call returned all the same.
    """

    outputs: tuple[tuple[ObservedTensor, ...], ...] = ()
    inputs: tuple[ObservedTensor, ...] = ()
    constants: tuple[ObservedTensor, ...] = ()
    rss: tuple[int, ...] = ()
    allocated_peak: int | None = None
    unseen_exception: str | None = None


@record
class DeviceMemory:
    """Bytes of a GPU."""

    free: int
    total: int


@record
class Acted:
    """Whether the changes of a request took effect. ``applied`` are the steps of its treatment, in words."""

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


@record
class ComparedOutput:
    """One output of two calls."""

    path: str = ""
    agrees: bool = False
    what: str | None = None
    max_abs_diff: float | None = None


@record
class RowsCompared:
    """The first ``rows`` of ``of`` rows alone and among the others; ``repeatable``: two whole calls are equal."""

    rows: int
    of: int
    repeatable: bool = False
    agrees: bool = False
    outputs: tuple[ComparedOutput, ...] = ()


@record
class ThreadsCompared:
    """Two thread counts; of each, whether its calls are equal. ``same`` are the bits of both, ``agrees`` the values."""

    threads: tuple[int, ...] = ()
    repeatable: tuple[bool, ...] = ()
    same: bool = False
    agrees: bool = False
    outputs: tuple[ComparedOutput, ...] = ()


@record
class SideBySide:
    """Calls that differ in one thing."""

    sub_batch: RowsCompared | None = None
    against_threads: ThreadsCompared | None = None


@record
class GivenWeight:
    """A weight that a set-up loads; ``same_as`` are other names of the same memory."""

    name: str
    same_as: tuple[str, ...] = ()
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    device: str = ""


@record
class GivenWeights:
    """Weights that a set-up loaded; ``after_load`` tells whether it has that function."""

    loaded_constants: tuple[GivenWeight, ...] = ()
    after_load: bool = False


@record
class SwapStep:
    """A call after a change of weights: whether it agrees with one after a fresh load of the same.

    ``output`` is the first that does not, ``stale`` are constants that have not got their new values.
    """

    name: str
    agrees: bool = False
    output: str = ""
    stale: tuple[str, ...] = ()


@record
class WeightSwap:
    """Second weights in the place of the first: those that ``changed``, and whether fresh loads differ in outputs."""

    steps: tuple[SwapStep, ...] = ()
    changed: tuple[str, ...] = ()
    outputs_change: bool | None = None


@record
class WeightsSwapped:
    """The change of weights."""

    weight_swap: WeightSwap | None = None


# Custom operators: their registration, their arguments, their results when called alone.
@record
class Argument:
    """An argument of a registered operator."""

    name: str
    has_default: bool = False


@record
class Operator:
    """The registry entry of a name; all else is of the overload in question: ``schema`` is its text, or None."""

    registered: bool = False
    schema: str | None = None
    arguments: tuple[Argument, ...] = ()
    returns: int | None = None
    kernel: bool | None = None


@record
class Registry:
    """Operators by the names in the request."""

    ops: Mapping[str, Operator] | None = None


@record
class SavedCall:
    """A call of an operator: node ``index`` of the package, its arguments in ``file``."""

    index: int = -1
    target: str = ""
    file: str = ""
    reason: str = ""


@record
class SavedCalls:
    """``by`` hooks or the reference; ``skipped`` have a reason instead of a file."""

    by: str = ""
    captured: tuple[SavedCall, ...] = ()
    skipped: tuple[SavedCall, ...] = ()
    unavailable: str = ""


@record
class OperatorCall:
    """One saved call made again. ``outputs`` None: it did not return. ``again`` are the digests of a second call."""

    file: str = ""
    bad: str | None = None
    arguments: tuple[ObservedTensor, ...] = ()
    outputs: tuple[ObservedTensor, ...] | None = None
    digests: tuple[str | None, ...] = ()
    again: tuple[str | None, ...] = ()
    writes: tuple[str, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    clean: bool = False
    generator: bool = False
    fake: tuple[ObservedTensor, ...] | None = None


@record
class OperatorAlone:
    """One operator, called by itself. ``opcheck`` maps PyTorch's tests to ``SUCCESS`` or their text."""

    calls: tuple[OperatorCall, ...] = ()
    returned: bool = False
    tags: tuple[str, ...] = ()
    opcheck: Mapping[str, str] = field(default_factory=dict)


# Launches, as hooks on a CUDA package see them.
@record
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


@record
class LaunchFailure:
    """The first answer of the driver that was an error: after ``call``, found ``before`` the next one."""

    code: int = 0
    name: str | None = None
    text: str | None = None
    call: Launch | None = None
    before: Launch | None = None
    run: int = 0


@record
class Launches:
    """A run with the driver's answer after each launch. ``launch_trace`` is there once the calls are hooked."""

    launch_trace: Mapping[str, int] | None = None
    launch_last: Launch | None = None
    launch_count: int | None = None
    launch_failure: LaunchFailure | None = None
    launch_problem: LaunchFailure | None = None


# A compiled package, a part of a program, the functions of an init library.
@record
class CompilerStep:
    """A step that the compiler's switch can turn off: its name there, the operator, the user's line."""

    name: str = ""
    target: str | None = None
    where: str | None = None


@record
class Compiled:
    """A compile: how long it took, and its steps by subsystem."""

    seconds: float = 0.0
    switchable: Mapping[str, tuple[CompilerStep, ...]] | None = None


@record
class PartCut:
    """A part of a program: its operators and what they call, in order; ``problem`` says why there is no such part."""

    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    inputs: int = 0
    problem: str | None = None


@record
class HookCalled:
    """An init library: which of its functions were ``found``, and what they did."""

    found: tuple[str, ...] = ()
    handle: int | None = None
    released: bool = False


# Exported programs, judged by every rule after they were rebuilt.
@record
class JudgedProgram:
    """One program of an archive; ``problem`` says why it could not be rebuilt.

    ``verifier`` is what PyTorch's own says: ``passes``, ``refuses`` (then ``verifier_says`` is its sentence) or
    ``not-asked``. ``cut`` counts, by rule (``G01``), the violations that are too many to be listed; ``skipped`` says
    why a rule was not judged. ``unknown_inputs`` are arguments of ``--dynamic-shapes`` that the program does not have.
    ``refusal`` is the traceback of the compiler, which does not write code for the program.
    """

    name: str = ""
    problem: str | None = None
    verifier: str = "not-asked"
    verifier_says: str | None = None
    records: tuple[Violation, ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    unknown_inputs: tuple[str, ...] = ()
    refusal: str = ""


@record
class RaisedError:
    """What a function of the user's raised instead of returning a program, at ``where`` in the user's code.

    ``by`` is ``model`` where plain PyTorch raises for the same inputs, ``export`` where only the export does, and
    ``function`` where it raises by itself.
    """

    type: str = ""
    message: str = ""
    traceback: str = ""
    where: str = ""
    by: str = "function"


@record
class Verified:
    """The programs of an archive, in order; of a function that raised, its error."""

    programs: tuple[JudgedProgram, ...] = ()
    raised: RaisedError | None = None


@record
class RemedyTried:
    """An attempt that came to its end: whether the outputs agree with those of plain PyTorch, and which do not.

    ``second`` is another call: what it was, and what came of it. Without ``compiled`` only the export was compared.
    ``dims`` are the dynamic shapes of the export, as Python; empty where they cannot be written down.
    """

    agrees: bool | None = None
    differs: str = ""
    dims: str = ""
    compiled: bool = False
    second: JsonObject | None = None


# Which parts an answer has.
A = TypeVar("A")
_RUN = (Called, Acted, SideBySide, Launches, GivenWeights, WeightsSwapped, Watching)
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
    "try_remedy": (RemedyTried,),
    "verify": (Verified,),
}


def parse_answer(kind: type[A], result: JsonObject) -> A:
    """The parts of ``kind`` that are in the result."""
    return from_json(kind, result)


def drop_malformed(job: str, result: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """The result without its malformed parts, and the place of each of those."""
    bad: dict[str, str] = {}
    for kind in ANSWERS.get(job, ()):
        bad |= dict(sorted(read_fields(kind, result)[1].items()))
    return {name: value for name, value in result.items() if name not in bad}, tuple(bad.values())
