"""Describe where a failure is: its place in the compiled code, and everything that points at it.

Also what the worker reports about kernels: the values that each call read and wrote, and the findings of an emulation
on the CPU. Counts are of elements.
"""

from __future__ import annotations

import math

from aotidoctor.model.record import record


# Answers: values that the calls of a run read and wrote.
@record
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

    def as_buffer(self, name: str, role: str) -> BufferValues:
        """The values of the buffer ``name``. Statistics of integers come as integers."""
        low, high, mean, error = (
            float(value) if value is not None and math.isfinite(value) else None
            for value in (self.min, self.max, self.mean, self.error)
        )
        return BufferValues(
            name=name,
            role=role,
            dtype=self.dtype,
            shape=tuple(size or 0 for size in self.shape or ()),
            nan=self.nan or 0,
            inf=self.inf or 0,
            low=low,
            high=high,
            mean=mean,
            error=error,
            matches=self.matches,
            target=self.target,
            where=self.where,
            agrees=self.agrees,
            written_by=self.writer,
            seen=not self.constant,
        )


@record
class WatchedCall:
    """A computing call, with what it read and wrote."""

    symbol: str = ""
    argument: int | None = None
    reads: tuple[WatchedTensor, ...] = ()
    writes: tuple[WatchedTensor, ...] = ()


@record
class WatchedOutput:
    """An output: the call that wrote it (None: an input), and whether it has the values of a node."""

    path: str = ""
    writer: int | None = None
    agrees: bool | None = None


@record
class OperatorPlace:
    """An operator of the reference and its source line."""

    target: str = ""
    where: str = ""


@record
class WatchedRun:
    """All calls of one run; ``left_out`` are those beyond the limits, ``problem`` is why there are none."""

    problem: str | None = None
    calls: tuple[WatchedCall, ...] = ()
    left_out: int = 0
    outputs: tuple[WatchedOutput, ...] = ()
    notes: tuple[str, ...] = ()
    compared: bool = False
    places: tuple[OperatorPlace, ...] = ()
    decomposition_differs: bool = False


@record
class Watching:
    """The values of kernels."""

    watch: WatchedRun | None = None


# Answers: a CUDA package that was emulated on the CPU.
@record
class EmulationFault:
    """What an emulation found wrong in one place.

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


@record
class NotEmulated:
    """A part that was not carried out, and its count."""

    what: str
    why: str
    times: int = 1


@record
class EmulatedLaunch:
    """The progress of one launch, and the method."""

    state: str | None = None
    way: str | None = None
    seconds: float = 0.0


@record
class Emulation:
    """The whole run: ``launched`` calls of kernels, ``operators`` that were carried out.

    ``lost`` counts statements and outputs that were not; ``problem`` says why nothing was emulated at all.
    """

    findings: tuple[EmulationFault, ...] = ()
    not_emulated: tuple[NotEmulated, ...] = ()
    launches: tuple[EmulatedLaunch, ...] = ()
    launched: int = 0
    operators: int = 0
    lost: int = 0
    problem: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether something was carried out, and all of it; by its addresses alone is enough."""
        made = self.done + self.operators
        return self.problem is None and made > 0 and self.done == self.launched and not self.lost

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
        """Seconds that the launches took."""
        return sum(one.seconds for one in self.launches)


@record
class Emulated:
    """A package carried out on the CPU."""

    emulation: Emulation | None = None


# The place of a failure.
@record
class SourceLine:
    """One line of a source file. ``number`` counts from 1; ``marked`` is the line in question."""

    number: int
    text: str
    marked: bool = False


@record
class Frame:
    """One native stack frame, innermost first.

    ``member`` is the package member whose line it is (None for code outside the package), ``file`` the path that the
    debug information names, ``library`` the shared object. ``lines`` is an excerpt of the member around ``line``.
    """

    index: int
    function: str | None
    file: str | None = None
    line: int | None = None
    library: str | None = None
    member: str | None = None
    lines: tuple[SourceLine, ...] = ()


@record
class TimelineEntry:
    """One computing call of the package in the order of execution.

    ``name`` is a kernel, an extern shim or an operator (``zoo::misbehave``). ``origins`` are ATen names, ``where`` is
    the user's source line where the package tells it. ``call`` counts the calls of the model from 1. ``seconds`` is
    the time until the next computing call, None for the last. ``state`` is ``returned`` or ``entered`` (never left).
    """

    name: str
    kind: str
    call: int
    state: str
    seconds: float | None = None
    origins: tuple[str, ...] = ()
    where: str | None = None


@record
class BufferValues:
    """Statistics of one buffer that a kernel read or wrote. Counts are elements; bounds are of the finite values.

    ``role`` is ``in`` or ``out``. ``written_by`` is the number of the call that wrote it last, None for inputs and
    constants. Where there is a reference: ``matches`` is the node whose values are closest, ``target`` and ``where``
    its operator and source line, ``error`` the largest difference from it, ``agrees`` whether that is within tolerance
    (None where no node has as many elements). ``seen`` is False for a tensor whose values were not looked at.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    error: float | None = None
    matches: str | None = None
    target: str | None = None
    where: str | None = None
    agrees: bool | None = None
    written_by: int | None = None
    seen: bool = True


@record
class KernelValues:
    """Buffers of one call. ``index`` is its place in the timeline of the first call of the model."""

    index: int
    name: str
    kind: str
    buffers: tuple[BufferValues, ...] = ()

    @property
    def read(self) -> tuple[BufferValues, ...]:
        """The tensors that it read."""
        return tuple(one for one in self.buffers if one.role == "in")

    @property
    def wrote(self) -> tuple[BufferValues, ...]:
        """The tensors that it wrote."""
        return tuple(one for one in self.buffers if one.role == "out")


@record
class Element:
    """One element of an input: ``args[1][0, 5] = 16``. ``index`` has one number per dim."""

    path: str
    index: tuple[int, ...]
    value: int

    @property
    def place(self) -> str:
        """``args[1][0, 5]``; a tensor without dims by its path alone."""
        return f"{self.path}[{', '.join(map(str, self.index))}]" if self.index else self.path

    def __str__(self) -> str:
        """``args[1][0, 5] = 16``."""
        return f"{self.place} = {self.value}"


@record
class Chain:
    """The chain of causes, from the check that failed back to the caller; unknown links are empty.

    ``what`` is what failed (``index 100 of 100``, ``division by zero``), ``elements`` the input elements that it was
    computed from and ``count`` how many places of the call fail alike; ``sources`` are the inputs or constants where
    no element could be named, ``through`` the calls in between. ``direct`` tells that the element is the index or
    divisor itself, perhaps counted from the end. ``index`` is the index that is not below ``bound``, and ``origin``
    where that bound comes from (``table.weight.shape[0]``). ``operators`` are the ATen names that can be meant,
    ``where`` the user's source lines. Of an index that is a position, ``sizes`` are the places of the inputs that show
    how many positions there are, and ``most`` is how many there may be. ``member`` and ``line`` are
    the place of the check in the package's sources.
    """

    kernel: str | None
    what: str
    elements: tuple[Element, ...] = ()
    count: int = 0
    sources: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    direct: bool = False
    index: int | None = None
    bound: int | None = None
    origin: str | None = None
    operators: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    most: int | None = None
    member: str | None = None
    line: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The inputs whose elements it leads to, else those that it was computed from."""
        return tuple(dict.fromkeys(element.path for element in self.elements)) or self.sources

    @property
    def element(self) -> Element | None:
        """The only element that it leads to."""
        return self.elements[0] if len(self.elements) == 1 else None

    @property
    def text(self) -> str:
        """The chain in one line."""
        parts = [(f"{self.kernel}: " if self.kernel else "") + self.what + self._origin()]
        if self.origin is not None:
            parts.append(f"bound from {self.origin}")
        if self.operators or self.where:
            named = [" or ".join(names) for names in (self.operators, self.where) if names]
            parts.append(f"from {' at '.join(named)}")
        return "; ".join(parts)

    def _origin(self) -> str:
        via = f" through {', '.join(self.through)}" if self.through else ""
        if self.elements:
            first = f", the first of {self.count}" if self.count > 1 else ""
            return f" ← {' and '.join(map(str, self.elements))}{first}{via}"
        if self.sizes:
            return f" ← a position along {' = '.join(self.sizes)}"
        return f" ← computed from {', '.join(self.sources)}{via}" if self.sources else ""


@record
class OutputComparison:
    """One output of the package against the reference's.

    ``verdict`` is ``agrees``, ``package-wrong``, ``reference-imprecise``, ``both-within`` or ``unknown`` (``reason``
    says why); where the two cannot be held against each other ``missing``, ``extra``, ``structure``, ``type``,
    ``shape`` or ``dtype``. Errors are the largest difference from a float64 run of the reference, in eps of the dtype:
    ``error`` of the package, ``reference_error`` of the reference, ``noise`` of float64 runs with the rounding of this
    program, and ``allowed`` what rounding explains; None where there was no such run. ``judged`` is the verdict of that
    run, whatever the tolerance. ``nan_differs`` is True where NaN or Inf stand at other places. ``rtol`` and ``atol``
    are the tolerance (``asked``: the user's), ``far`` counts the elements beyond it; ``needed`` holds pairs of rtol and
    the smallest atol with which all elements agree.
    """

    path: str
    verdict: str
    dtype: str = ""
    reference_dtype: str = ""
    shape: tuple[int, ...] = ()
    reference_shape: tuple[int, ...] = ()
    max_abs: float | None = None
    max_rel: float | None = None
    error: float | None = None
    reference_error: float | None = None
    noise: float | None = None
    allowed: float | None = None
    nan: int = 0
    reference_nan: int = 0
    inf: int = 0
    reference_inf: int = 0
    nan_differs: bool = False
    judged: str | None = None
    numel: int = 0
    far: int = 0
    rtol: float | None = None
    atol: float | None = None
    asked: bool = False
    needed: tuple[tuple[float, float], ...] = ()
    reason: str | None = None


@record
class CustodyStage:
    """A stage between a model and its package, held ``against`` the one before (None: alone).

    ``verdict`` is ``agrees``, ``differs``, ``raises``, ``undecided`` or ``not looked at``; ``observed`` says by how
    much, what it raises, or why not. ``operator`` and ``where`` are the place; ``first`` is the first that breaks it.
    """

    name: str
    verdict: str
    against: str | None = None
    observed: str = ""
    operator: str | None = None
    where: str | None = None
    run: str | None = None
    first: bool = False


@record
class Localization:
    """The place of a failure.

    ``culprit`` is the kernel, operator or node; ``how`` says which method named it; ``chain`` is the blame chain in one
    line (kernel ← input element; bound; origin), ``check`` the check at its start. ``fault_address`` and
    ``fault_target`` are the address of a memory fault and what lies there. ``notes`` say what the watched run left out.
    ``comparison`` is that with the reference, output by output; ``stages`` are those from the model on.
    """

    culprit: str | None = None
    how: str = ""
    chain: str | None = None
    check: Frame | None = None
    timeline: tuple[TimelineEntry, ...] = ()
    calls_total: int = 0
    frames: tuple[Frame, ...] = ()
    fault_address: str | None = None
    fault_target: str | None = None
    values: tuple[KernelValues, ...] = ()
    notes: tuple[str, ...] = ()
    first_bad: str | None = None
    bisected: str | None = None
    comparison: tuple[OutputComparison, ...] = ()
    stages: tuple[CustodyStage, ...] = ()
