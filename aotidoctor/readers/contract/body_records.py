"""What ``run_impl`` says, as records: the vocabulary between its reader and what is worked out from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.record import record
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.losses import Losses


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
    """A call as it stands: the function, the text of its arguments, its line and the comment above it."""

    function: str
    arguments: str
    line: int
    origins: tuple[str, ...] = ()
    source_nodes: tuple[str, ...] = ()


@record
class Event:
    """An allocation, renaming, view, call or output, in order: what the data-flow reads."""

    kind: str
    name: str
    other: str = ""
    call: RawCall | None = None


@record(kw_only=False, frozen=False)
class Body:
    """What ``run_impl`` says.

    ``definitions`` are the locals that hold sizes, in order; ``renamed`` maps a name to the one whose tensor it took or
    views (then ``view_shapes`` has its shape); ``like`` maps a name to one of the same dtype and shape whose memory it
    may not share (a copy, or what a subgraph hands on); ``numbers`` are the tensors made of a number of the program,
    with its C++ text; ``view_dtypes`` are the dtypes of views with another than their tensor; ``launches`` are those of
    packages before 2.7, by kernel and line; ``used`` are the names that any statement but a check mentions once the
    inputs are unpacked; ``losses`` are the statements that were not understood.
    """

    losses: Losses
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
    events: list[Event] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    view_dtypes: dict[str, str] = field(default_factory=dict)
    launches: Mapping[str, Launch] = field(default_factory=dict)
