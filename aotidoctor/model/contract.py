"""Describe the contract of compiled code: its inputs, outputs, kernels, and needs of a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from aotidoctor.model.expr import Expr, evaluate
from aotidoctor.model.inputs import Container
from aotidoctor.model.record import record


@record
class Dim:
    """One dimension.

    ``static`` is its only size, None when dynamic. ``min`` and ``max`` are the compiled inclusive bounds, None where
    the code has none. ``expr`` is the size in terms of shared symbols (``s77``, ``8*s39``), None when unknown.
    ``among`` are the sizes that one may have of which it is only known that it is fixed.
    """

    static: int | None = None
    min: int | None = None
    max: int | None = None
    expr: Expr | None = None
    among: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the size may be anything within the bounds, as far as is known."""
        return self.static is None and self.expr is None

    def size(self, symbols: Mapping[str, int]) -> int | None:
        """Its size where the symbols have these values; None where they do not determine it."""
        if self.static is not None or self.expr is None:
            return self.static
        return evaluate(self.expr, symbols)


@record
class Reads:
    """The range of an input that a kernel certainly reads: as far as ``extent`` elements, counted from its first one.

    ``step`` is how far the outermost of several loops goes in each turn, None where there is one loop.
    """

    extent: Expr
    step: Expr | None = None


@record
class Turn:
    """One loop of a kernel: ``trips`` turns, each ``step`` elements on in an input, ``beside`` in what is written."""

    step: Expr
    trips: Expr
    beside: Expr | None = None


@record
class Walk:
    """The path of a kernel's loops through an input, from element ``start`` on, in no order.

    ``sizes`` and ``strides`` are those of the buffer that the same loops write, empty where none is known.
    """

    start: int
    turns: tuple[Turn, ...]
    sizes: tuple[Expr, ...] = ()
    strides: tuple[Expr, ...] = ()


@record
class LeafSpec:
    """One leaf of the call spec.

    ``path`` is the user's name. Tensor leaves have ``input_index`` (``input_handles[i]``), ``generated_name``
    (``arg3_1``), and whatever of dtype (``float32``...), dims, strides (elements; None where not constant) and device
    type (``cpu``, ``cuda``) the package tells; ``rank`` is None when the source does not determine it.
    ``kind`` is ``tensor``, ``constant`` (a non-tensor value baked in at export: ignored at run time) or ``unknown``.
    ``used`` is False when no generated statement reads the input beyond its checks, None when unknown.
    ``stride_exprs`` are all strides in terms of shared symbols, constant ones included, where the source tells them.
    ``mutated`` is True when a generated kernel takes the input as something to write to, None when unknown.
    ``reads`` tells how far kernels read into an input of which a size is not known, ``walks`` in which steps where its
    strides are not known; ``walked`` that no kernel reads it in another way. ``alignment``: the code asserts that the
    input begins at a multiple of so many bytes of its storage (since 2.15).
    """

    index: int
    path: str
    kind: str
    input_index: int | None = None
    generated_name: str | None = None
    triton_names: tuple[str, ...] = ()
    dtype: str | None = None
    rank: int | None = None
    dims: tuple[Dim, ...] | None = None
    strides: tuple[int | None, ...] | None = None
    device_type: str | None = None
    used: bool | None = None
    source_line: int | None = None
    check_line: int | None = None
    stride_exprs: tuple[Expr | None, ...] | None = None
    mutated: bool | None = None
    reads: tuple[Reads, ...] = ()
    walks: tuple[Walk, ...] = ()
    walked: bool = False
    alignment: int | None = None

    @property
    def has_open_sizes(self) -> bool:
        """Whether the number of dims or a size is not known."""
        # A size that follows from another one stands in no package before 2.13.
        return self.rank is None or any(dim.is_open for dim in self.dims or ())


@record
class Symbol:
    """A symbolic size: the dims that show it, and its definition as the wrapper writes it."""

    name: str
    definition: str
    appears_in: tuple[str, ...] = ()


@record
class ConstantSpec:
    """One constant (parameter, buffer, tensor constant): its contract, not its values. ``data_size`` in bytes.

    One that is not ``strided`` is packed for a library of kernels; its shape does not tell how it lies. Of a small
    vector in a file of weights, ``values`` are the numbers: the compiler writes such ones into the code.
    """

    name: str
    original_fqn: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    device_type: str | None = None
    offset: int | None = None
    data_size: int | None = None
    kind: str | None = None
    from_folded: bool = False
    strided: bool = True
    values: tuple[float, ...] = ()

    @property
    def fqn(self) -> str:
        """Its name in the program; the one in the generated code where the package has no other."""
        return self.original_fqn or self.name


@record
class OutputSpec:
    """One output; ``path`` is ``result``, ``result[0]``, ``result['a']``...

    ``kind`` is ``tensor``, ``number`` (a number of the program, handed back as a tensor without dims) or ``none``
    (nothing is handed back: the program returns None there). ``same_as`` is the path of the input that is handed back
    as this output or whose memory it views, None for a tensor of its own.
    """

    index: int
    path: str
    dtype: str | None = None
    shape: tuple[str, ...] | None = None
    device_type: str | None = None
    same_as: str | None = None
    kind: str = "tensor"


GENERATED = ("cpp", "triton", "metal")
"""Kinds of calls whose code the compiler wrote."""


@record
class KernelCall:
    """One call in call order.

    ``kind`` is ``cpp`` (generated C++), ``triton``, ``metal``, ``extern`` (``aoti_torch_*``) or ``custom`` (proxy
    executor). ``origins`` are ATen names (``aten.mm``). ``grid``, ``warps``, ``shared`` are launch settings of a Triton
    kernel, as text; of a Metal kernel ``grid`` are its threads. ``guarded`` tells that the wrapper leaves out a launch
    with an empty grid; ``unchecked`` that it does not look at the status that the operator returns, so that an error of
    the operator leaves an unfinished output.
    """

    name: str
    kind: str
    line: int | None = None
    origins: tuple[str, ...] = ()
    source_nodes: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    warps: str | None = None
    shared: str | None = None
    device_code: str | None = None
    guarded: bool = False
    unchecked: bool = False


@record
class PromisedResult:
    """Assumptions of the compiled code about a result of a custom operator; None where it has none.

    Sizes and strides are C++ text (``4L``, ``8L*s0``). ``name`` is the wrapper's; ``used`` tells whether anything reads
    the tensor.
    """

    name: str
    dtype: str | None
    shape: tuple[str, ...] | None
    stride: tuple[str, ...] | None
    used: bool


@record
class CustomCall:
    """One call of the proxy executor: ``index`` of its node, the operator, and what is expected to come back.

    ``arguments`` has an entry per tensor that goes in: what is taken for granted about it where it is, unchanged in
    form, the result of an earlier such call, else None.
    """

    index: int
    target: str
    line: int
    arguments: tuple[PromisedResult | None, ...] = ()
    results: tuple[PromisedResult, ...] = ()


@record
class BoundCheck:
    """A compiled-in index assertion (``index out of bounds: 0 <= tmp2 < 100L``) of ``kernel``."""

    kernel: str
    text: str
    bound: str
    line: int | None = None
    member: str | None = None


@record
class KernelParameter:
    """A parameter of a kernel. ``type`` is the C++ type without const and pointer (``int64_t``), or Triton's (``i64``).

    ``pointer`` tells a tensor from a number; ``const`` a tensor that the kernel does not write to.
    """

    name: str
    type: str
    pointer: bool
    const: bool


@record
class KernelBody:
    """The place of a kernel's source: ``lines`` lines of ``member`` from ``line`` (counted from 1).

    ``kind`` is ``cpp``, ``triton`` or ``metal``; a Triton source is a comment in the wrapper.
    """

    name: str
    kind: str
    member: str
    line: int
    lines: int
    parameters: tuple[KernelParameter, ...] = ()


@record
class HostNeeds:
    """Requirements of the package on a host.

    ``baked_threads`` maps a kernel to the number of threads its per-thread accumulators were sized for, only where
    its parallel region does not fix the number itself. ``random_ops`` are calls whose results differ between runs by
    design. ``uninitialized_ops`` are ``aten.empty``-like origins that a kernel reads. ``isa`` holds CPU features as
    /proc/cpuinfo spells them. ``nan_constants`` are kernels that hold a NaN as a constant: ``torch.empty`` compiles to
    that, and so does a NaN that the model writes on purpose.
    """

    device_type: str | None = None
    compute_capability: str | None = None
    gpu_code: tuple[str, ...] = ()
    missing_gpu_code: tuple[str, ...] = ()
    isa: tuple[str, ...] = ()
    march_native: bool = False
    baked_threads: Mapping[str, int] = field(default_factory=dict)
    torch_path: str | None = None
    torch_version: str | None = None
    python_version: str | None = None
    cuda_version: str | None = None
    cxx11_abi: bool | None = None
    random_ops: tuple[str, ...] = ()
    uninitialized_ops: tuple[str, ...] = ()
    nan_constants: tuple[str, ...] = ()


@record
class Unread:
    """Statements of one part of the wrapper that were not understood, and the kind of fact that may be lost with them.

    ``part`` is ``constructor``, ``checks``, ``launches`` or ``body``; ``fact`` is ``input``, ``symbol``, ``assert``,
    ``buffer``, ``call``, ``launch``, ``device-code``, ``output``, ``constant``, ``call-spec`` or ``statement`` (any of
    them). ``line`` and ``example`` (cut) are those of the first.
    """

    part: str
    fact: str
    count: int
    line: int
    example: str


# The input of each leaf, in order of leaves; None for a constant.
Reading = tuple[int | None, ...]


@record
class ModelContract:
    """The contract of one compiled model.

    ``args`` and ``kwargs`` are the trees of the call spec; their leaves are indices into ``leaves``. ``source`` is
    ``wrapper.cpp`` or ``recovered`` (by probing the running code) or ``call-spec``. ``weights`` is where the constants
    are: ``so``, ``mmap``, ``blob``, ``disk``, ``none`` (no constants), ``external`` (nobody ships them), ``unknown``.
    ``unknown_lines`` counts statements that looked like contract and were not understood. ``readings`` are all ways to
    tell the tensors among the leaves that the package allows, empty where it allows one; ``open_leaves`` is what
    ``problems`` says of it. ``bodies`` are the sources of the generated kernels; ``renamed`` maps a name of the wrapper
    to the one whose memory it took over or shows, and ``views`` are the names that show it in another form.
    ``buffer_devices`` are the device types of the tensors that the wrapper allocates. ``unread`` are the statements
    behind ``unknown_lines``, by part and kind of fact. ``completed`` are the paths of leaves of which the package left
    something open that the reference program tells.
    """

    model_name: str
    source: str
    args: Container[int] | None
    kwargs: Container[int] | None
    leaves: tuple[LeafSpec, ...]
    n_inputs: int
    n_outputs: int | None = None
    n_constants: int | None = None
    outputs: tuple[OutputSpec, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    constants: tuple[ConstantSpec, ...] = ()
    kernels: tuple[KernelCall, ...] = ()
    bound_checks: tuple[BoundCheck, ...] = ()
    custom_ops: tuple[str, ...] = ()
    custom_calls: tuple[CustomCall, ...] = ()
    needs: HostNeeds = field(default_factory=HostNeeds)
    weights: str = "unknown"
    in_spec: str | None = None
    out_spec: str | None = None
    member: str | None = None
    unknown_lines: int = 0
    problems: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    open_leaves: str | None = None
    bodies: tuple[KernelBody, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    views: frozenset[str] = frozenset()
    buffer_devices: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    completed: tuple[str, ...] = ()

    def tensor_leaves(self) -> tuple[LeafSpec, ...]:
        """Leaves that are tensors, in the order of ``input_handles``."""
        tensors = [leaf for leaf in self.leaves if leaf.input_index is not None]
        return tuple(sorted(tensors, key=lambda leaf: leaf.input_index or 0))

    def leaves_open(self) -> bool:
        """Whether dtype, rank or a size of some input that is read is not known."""
        read = (leaf for leaf in self.tensor_leaves() if leaf.used is not False)
        return any(leaf.dtype is None or leaf.has_open_sizes for leaf in read)


# An input of the contract in a few words.
# A dim that is known to be fixed is shown with the sizes that it may have, unless they are many.
MOST_SIZES = 6


def earlier_names(name: str, renamed: Mapping[str, str]) -> Iterator[str]:
    """``name``, and step by step the names that its memory had before."""
    yield name
    for _ in range(len(renamed)):
        if name not in renamed:
            return
        name = renamed[name]
        yield name


def describe_spec(spec: LeafSpec) -> str:
    """A leaf in a few words: ``float32[s0, 16]`` or ``a value fixed at export``."""
    if spec.input_index is None:
        return "a value fixed at export"
    if spec.dims is None:
        return f"a {spec.dtype or ''} tensor".replace("  ", " ")
    sizes = []
    for dim in spec.dims:
        if dim.static is not None:
            sizes.append(str(dim.static))
        elif 0 < len(dim.among) <= MOST_SIZES:
            sizes.append("|".join(map(str, dim.among)))
        else:
            sizes.append(str(dim.expr) if dim.expr is not None else "?")
    return f"{spec.dtype or 'tensor'}[{', '.join(sizes if spec.rank is not None else [*sizes, '…'])}]"
