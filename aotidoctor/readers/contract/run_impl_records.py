"""Records of run_impl: buffers, events, Triton launches, and the aliases and views of buffers.

A reused buffer and a new handle are the same tensor; a view is the same memory in another form; a copy, and what a
subgraph takes or returns, have the dtype and shape of the first and perhaps its memory.
"""

from __future__ import annotations

import re
from dataclasses import field, replace

from aotidoctor.model.record import record
from aotidoctor.readers.contract.wrapper_statements import Statement
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


@record(kw_only=False, frozen=False)
class Body:
    """Contents of ``run_impl``.

    ``definitions`` are the locals that hold sizes, in order; ``renamed`` maps a name to the one whose tensor it took or
    views (then ``view_shapes`` has its shape); ``like`` maps a name to one of the same dtype and shape whose memory it
    may not share (a copy, or what a subgraph takes or returns); ``numbers`` are the tensors made of a number of the
    program, with its C++ text; ``view_dtypes`` are the dtypes of views with another than their tensor; ``launches`` are
    those of packages before 2.7, by kernel and line; ``used`` are the names that any statement but a check mentions
    once the inputs are unpacked; ``events`` are the allocations, renamings, views, calls, releases and outputs in
    order, for the analysis of the flow of data; ``losses`` are the statements that were not understood.
    """

    losses: NotUnderstood
    unpacked: dict[str, tuple[int, int]] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    definitions: dict[str, str] = field(default_factory=dict)
    assertions: list[Statement] = field(default_factory=list)
    alignments: dict[str, int] = field(default_factory=dict)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    like: dict[str, str] = field(default_factory=dict)
    view_shapes: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    calls: list[Statement] = field(default_factory=list)
    events: list[Statement] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    view_dtypes: dict[str, str] = field(default_factory=dict)
    launches: dict[str, TritonLaunch] = field(default_factory=dict)


# Aliases: new names for tensors.
_RESTRIDED = re.compile(r"(\w+)_handle, (\w+), \w+, &\1_handle_restrided")
_VIEW_DTYPE = re.compile(r"(.+), \w+?_dtype_(\w+?)(?:\(\))?, &(\w+)")
_LONGEST = 20_000


def alias_buffer(body: Body, one: Statement, shape: tuple[str, ...] | None = None) -> None:
    """Make ``one.name`` the tensor of ``one.source``, or a ``view`` of it with ``shape``."""
    body.events.append(one)
    body.renamed[one.name] = one.source
    same = one.kind != "view"
    if not same:
        body.view_shapes[one.name] = shape
    origin = body.buffers.get(one.source)
    if origin is not None:
        body.buffers[one.name] = Buffer(
            dtype=origin.dtype,
            shape=origin.shape if same else shape,
            device_type=origin.device_type,
            strides=origin.strides if same else None,
        )


def alias_subgraph_value(body: Body, one: Statement) -> None:
    """Make a name a value that a subgraph takes or returns: of the dtype, shape and perhaps memory of another."""
    name, source = one.name.removesuffix("_handle"), tensor_below(one.source)
    body.events.append(replace(one, name=name, source=source))
    if name not in body.like or source in body.buffers:
        # Of several branches, or the start and the rounds of a loop, one with a buffer has the most facts.
        body.like[name] = source


def allocate_buffer(body: Body, one: Statement) -> bool:
    """Make ``one.name`` a new buffer, or a part of another; whether its shape is known."""
    shape, strides = body.arrays.get(one.size_array), body.arrays.get(one.stride_array)
    owner = body.buffers.get(one.source)
    kind = one.device_type if owner is None else owner.device_type
    own = None if one.source else strides
    body.buffers[one.name] = Buffer(dtype=one.dtype or "", shape=shape, device_type=kind, strides=own)
    # One without elements is never read before it is written.
    if "0L" not in (shape or ()):
        body.events.append(one)
    return shape is not None or bool(one.source)


def restride_buffer(body: Body, call: Statement) -> bool:
    """Read ``call`` where it gives a buffer another shape; whether it does."""
    restrided = call.function == "aoti_torch_as_strided" and len(call.arguments) < _LONGEST
    padded = _RESTRIDED.fullmatch(call.arguments) if restrided else None
    old = body.buffers.get(padded[1]) if padded is not None else None
    if padded is None or old is None:
        return False
    shape = body.arrays.get(padded[2])
    body.buffers[padded[1]] = Buffer(dtype=old.dtype, shape=shape, device_type=old.device_type)
    return True


def read_view(body: Body, call: Statement) -> bool:
    """Read ``call`` where it makes a view with another dtype; whether it does."""
    viewing = call.function.endswith("_view_dtype") and len(call.arguments) < _LONGEST
    view = _VIEW_DTYPE.fullmatch(call.arguments) if viewing else None
    if view is None:
        return False
    alias_buffer(body, replace(call, kind="view", name=view[3], source=tensor_below(view[1])))
    body.view_dtypes[view[3]] = view[2]
    return True


def tensor_below(text: str) -> str:
    """The tensor that an expression views, or its name."""
    _, view, inside = text.partition("reinterpret_tensor_wrapper(")
    return inside.partition(",")[0] if view else text
