"""Describe one call of a package from inside: source lines, calls, kernels, memory, and what a run measured of them.

A call is known by its place in run_impl, counted from 0; a buffer by the first name that its memory has there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import accumulate

from aotidoctor.model.localization import BufferValues
from aotidoctor.model.record import record

MAP_SCHEMA = "aotidoctor.map/1"
ROLES = ("weight", "input", "output", "activation", "temporary")


@record
class MapBuffer:
    """A piece of memory of the call.

    ``label`` is the user's name of an input or weight, else ``name``. ``names`` are the further names of the same
    memory: reuses and views. ``role`` is one of ``ROLES``: a ``temporary`` is last used by the call right after the one
    that wrote it first. ``shape`` and ``size`` (bytes) are texts with the symbols of the package; ``bytes`` is the size
    in this call, None where a symbol or the element type is not known. It lives from call ``first`` to call ``last``
    inclusive. ``pool`` is the buffer that it is a part of.
    """

    name: str
    label: str
    role: str
    dtype: str | None = None
    shape: tuple[str, ...] | None = None
    size: str | None = None
    bytes: int | None = None
    device: str | None = None
    names: tuple[str, ...] = ()
    first: int = 0
    last: int = 0
    written: tuple[int, ...] = ()
    read: tuple[int, ...] = ()
    pool: str | None = None


def alive_bytes(buffers: Sequence[MapBuffer], calls: int) -> list[int]:
    """Bytes of ``buffers`` that live during each of ``calls`` calls; one without a known size counts as none."""
    changes = [0] * (calls + 1)
    for one in buffers:
        changes[min(one.first, calls)] += one.bytes or 0
        changes[min(one.last + 1, calls)] -= one.bytes or 0
    return list(accumulate(changes[:calls]))


@record
class CallTime:
    """Seconds of one call over ``runs`` calls of the model: median and quartiles, the stamps' own cost taken off.

    ``share`` is the part of the median in the sum of all medians.
    """

    seconds: float
    low: float
    high: float
    runs: int
    share: float = 0.0


@record
class MapCall:
    """One computing call.

    ``operators`` are ATen names, ``nodes`` those of the program's nodes, ``where`` the user's source lines. ``reads``
    and ``writes`` are names of buffers; ``moved`` is the sum of their bytes, ``operations`` the multiplications and
    additions of a matrix product, both None where not known. ``alive`` is the memory that lives during the call,
    without weights and inputs, as far as sizes are known. ``state`` is ``returned``, ``entered`` (the run ended in it)
    or None (not run, or not seen). ``values`` are what a run read and wrote.
    """

    index: int
    name: str
    kind: str
    line: int | None = None
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    moved: int | None = None
    operations: int | None = None
    alive: int = 0
    state: str | None = None
    time: CallTime | None = None
    values: tuple[BufferValues, ...] = ()

    @property
    def error(self) -> float | None:
        """The largest difference of what it wrote from the reference's nodes; results that no node has are left out."""
        known = [one.error for one in self.values if one.role == "out" and one.agrees and one.error is not None]
        return max(known, default=None)

    @property
    def nonfinite(self) -> int:
        """Elements that it wrote and that are NaN or Inf."""
        return sum(one.nan + one.inf for one in self.values if one.role == "out")


@record
class MapKernel:
    """A kernel that the compiler generated: the place of its text, and the calls that use it."""

    name: str
    kind: str
    member: str
    line: int
    lines: int
    calls: tuple[int, ...] = ()


@record
class MapLine:
    """A line of the user's source, with its calls. ``seconds`` is the sum of their medians."""

    where: str
    text: str = ""
    nodes: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()
    seconds: float | None = None


@record
class MemoryPeak:
    """The call during which most memory lives, without weights and inputs, and the buffers alive then, largest first.

    ``weights`` and ``inputs`` are bytes that live all the time. ``unknown`` are buffers without a known size.
    ``allocated`` is what a call of the model held at most, with the memory that operators need in between.
    """

    call: int | None = None
    bytes: int = 0
    weights: int = 0
    inputs: int = 0
    alive: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    allocated: int | None = None


@record
class MapRun:
    """What was run: calls of the model that were timed, median and quartiles of their seconds in the compiled code.

    ``stamp`` is the cost of one stamp in seconds; ``first`` the seconds of the first call, which is left out of the
    times. ``ended`` says how a run ended that did not come to its end. ``compared``: with a reference.
    """

    runs: int = 0
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    first: float | None = None
    stamp: float | None = None
    threads: int | None = None
    compared: bool = False
    ended: str | None = None


@record
class MapHint:
    """Something to look at: ``kind``, the calls, what was seen, and what may be tried."""

    kind: str
    text: str
    calls: tuple[int, ...] = ()
    advice: str = ""


@record
class PackageMap:
    """The map of one call of a package. ``symbols`` have the sizes of this call; ``notes`` say what is not known."""

    package: str
    model_name: str
    device: str
    inputs: str | None = None
    reference: str | None = None
    symbols: Mapping[str, int] = field(default_factory=dict)
    calls: tuple[MapCall, ...] = ()
    buffers: tuple[MapBuffer, ...] = ()
    kernels: tuple[MapKernel, ...] = ()
    lines: tuple[MapLine, ...] = ()
    peak: MemoryPeak = field(default_factory=MemoryPeak)
    run: MapRun | None = None
    hints: tuple[MapHint, ...] = ()
    notes: tuple[str, ...] = ()
