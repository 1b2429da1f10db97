"""Records of run_impl: buffers, assertions, calls, Triton launches, and the aliases and views of buffers.

A reused buffer and a new handle are the same tensor; a view is the same memory in another form; a copy, and what a
subgraph takes or returns, have the dtype and shape of the first and perhaps its memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field

from aotidoctor.model.record import record
from aotidoctor.readers.contract.wrapper_text import NotUnderstood


@record
class TritonLaunch:
    """A Triton kernel.

    ``inputs`` are the positions of parameters that are only read; ``source`` is the Triton source and ``line`` where it
    begins; ``embedded``: the device code is inside the shared object; ``guarded``: an empty grid is not launched.
    """

    name: str
    grid: tuple[str, ...]
    warps: str | None
    shared: str | None
    device_code: str | None
    embedded: bool
    guarded: bool
    inputs: frozenset[int]
    source: str
    line: int


@record
class Buffer:
    """An allocated buffer: element type, shape and strides as the wrapper writes them, device type."""

    dtype: str
    shape: tuple[str, ...] | None
    device_type: str
    strides: tuple[str, ...] | None = None


@record
class Assertion:
    """An ``assert_size_stride``: sizes and strides as the wrapper writes them; the dtype since 2.14."""

    name: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    operator: str
    line: int
    dtype: str | None = None


@record
class RawCall:
    """A call: the function, the text of its arguments, its line and the comment above it.

    ``checked``: the statement looks at the status that the function returns.
    """

    function: str
    arguments: str
    line: int
    origins: tuple[str, ...] = ()
    source_nodes: tuple[str, ...] = ()
    checked: bool = False


@record
class BodyEvent:
    """An allocation, renaming, view, call, end (``free``) or output, in order: input of the data-flow analysis.

    An ``allocate`` with ``other`` takes a part of that buffer, which holds several.
    """

    kind: str
    name: str
    other: str = ""
    call: RawCall | None = None


@record(kw_only=False, frozen=False)
class Body:
    """Contents of ``run_impl``.

    ``definitions`` are the locals that hold sizes, in order; ``renamed`` maps a name to the one whose tensor it took or
    views (then ``view_shapes`` has its shape); ``like`` maps a name to one of the same dtype and shape whose memory it
    may not share (a copy, or what a subgraph takes or returns); ``numbers`` are the tensors made of a number of the
    program, with its C++ text; ``view_dtypes`` are the dtypes of views with another than their tensor; ``launches`` are
    those of packages before 2.7, by kernel and line; ``used`` are the names that any statement but a check mentions
    once the inputs are unpacked; ``losses`` are the statements that were not understood.
    """

    losses: NotUnderstood
    unpacked: dict[str, tuple[int, int]] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    definitions: dict[str, str] = field(default_factory=dict)
    assertions: list[Assertion] = field(default_factory=list)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    like: dict[str, str] = field(default_factory=dict)
    view_shapes: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    calls: list[RawCall] = field(default_factory=list)
    events: list[BodyEvent] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    view_dtypes: dict[str, str] = field(default_factory=dict)
    launches: Mapping[str, TritonLaunch] = field(default_factory=dict)


# Aliases: new names for tensors.
_POOL = re.compile(r"aoti_torch__alloc_from_pool\((\w+), [^,]+, \w+?_dtype_(\w+?)(?:\(\))?, \d+, (\w+), \w+, &(\w+)\)$")
_RESTRIDED = re.compile(r"aoti_torch_as_strided\((\w+)_handle, (\w+), \w+, &\1_handle_restrided\)$")
_NEW_NAME = re.compile(r"aoti_torch_(new_tensor_handle|assign_tensors_out)\((.+), &(\w+)\)$")
_VIEW_DTYPE = re.compile(r"aoti_torch_\w+_view_dtype\((.+), \w+?_dtype_(\w+?)(?:\(\))?, &(\w+)\)$")
_CLONE = re.compile(r"aoti_torch_clone\((.+), &output_handles\[(\d{1,6})\]\);?$")
_LONGEST = 20_000


def alias_buffer(body: Body, kind: str, name: str, source: str, shape: tuple[str, ...] | None) -> None:
    """Make ``name`` the tensor of ``source`` (``kind`` is ``reuse``), or a ``view`` of it with ``shape``."""
    body.events.append(BodyEvent(kind=kind, name=name, other=source))
    body.renamed[name] = source
    if kind == "view":
        body.view_shapes[name] = shape
    origin = body.buffers.get(source)
    if origin is not None:
        same = kind == "reuse"
        body.buffers[name] = Buffer(
            dtype=origin.dtype,
            shape=origin.shape if same else shape,
            device_type=origin.device_type,
            strides=origin.strides if same else None,
        )


def alias_subgraph_value(body: Body, name: str, source: str) -> None:
    """Make ``name`` a value that a subgraph takes or returns: of the dtype, shape and perhaps memory of ``source``."""
    body.events.append(BodyEvent(kind="reuse", name=name, other=source))
    if name not in body.like or source in body.buffers:
        # Of several branches, or the start and the rounds of a loop, one with a buffer has the most facts.
        body.like[name] = source


def allocate_buffer(body: Body, name: str, buffer: Buffer, pool: str = "") -> None:
    """Make ``name`` a new buffer, in ``pool`` if given; one without elements is never read before it is written."""
    body.buffers[name] = buffer
    if "0L" not in (buffer.shape or ()):
        body.events.append(BodyEvent(kind="allocate", name=name, other=pool))


def read_alias(body: Body, call: str, note_use: Callable[[str], None]) -> bool:
    """Read ``call`` where it is one of the runtime that copies, renames or resizes a tensor; whether it is one."""
    if len(call) > _LONGEST:
        return False
    if clone := _CLONE.match(call):
        name = f"output_handles[{clone[2]}]"
        body.outputs[int(clone[2])] = name
        body.like[name] = clone[1]
        body.events.append(BodyEvent(kind="output", name=clone[1]))
    elif handle := _NEW_NAME.match(call):
        if handle[1] == "new_tensor_handle":
            alias_buffer(body, "reuse", handle[3], handle[2], None)
        else:
            alias_subgraph_value(body, handle[3].removesuffix("_handle"), _below(handle[2]))
    elif pool := _POOL.match(call):
        owner = body.buffers.get(pool[1])
        kind = owner.device_type if owner is not None else ""
        taken = Buffer(dtype=pool[2], shape=body.arrays.get(pool[3]), device_type=kind)
        allocate_buffer(body, pool[4], taken, pool[1])
    elif (padded := _RESTRIDED.match(call)) and (old := body.buffers.get(padded[1])) is not None:
        shape = body.arrays.get(padded[2])
        body.buffers[padded[1]] = Buffer(dtype=old.dtype, shape=shape, device_type=old.device_type)
    else:
        return False
    note_use(call)
    return True


def read_view(body: Body, call: str) -> bool:
    """Read ``call`` where it makes a view with another dtype; whether it does."""
    view = _VIEW_DTYPE.match(call) if "_view_dtype(" in call[:200] and len(call) < _LONGEST else None
    if view is None:
        return False
    alias_buffer(body, "view", view[3], _below(view[1]), None)
    body.view_dtypes[view[3]] = view[2]
    return True


def _below(text: str) -> str:
    """The tensor that an expression views, or its name."""
    _, view, inside = text.partition("reinterpret_tensor_wrapper(")
    return inside.partition(",")[0] if view else text
