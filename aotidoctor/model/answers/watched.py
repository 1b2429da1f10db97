"""The values that the calls of a run read and wrote."""

from __future__ import annotations

from aotidoctor.model.record import record


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
class Place:
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
    places: tuple[Place, ...] = ()
    decomposition_differs: bool = False


@record
class Watching:
    """The values of kernels."""

    watch: WatchedRun | None = None
