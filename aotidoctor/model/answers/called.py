"""A call of a model, by itself or beside another one."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.record import record


@record
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


@record
class Called:
    """Calls of a model: ``outputs`` by call, ``rss`` in bytes after each."""

    outputs: tuple[tuple[Tensor, ...], ...] = ()
    inputs: tuple[Tensor, ...] = ()
    constants: tuple[Tensor, ...] = ()
    rss: tuple[int, ...] = ()


@record
class DeviceMemory:
    """Bytes of a GPU."""

    free: int
    total: int


@record
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


@record
class Compared:
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
    outputs: tuple[Compared, ...] = ()


@record
class ThreadsCompared:
    """Two thread counts; of each, whether its calls are equal. ``same`` are the bits of both, ``agrees`` the values."""

    threads: tuple[int, ...] = ()
    repeatable: tuple[bool, ...] = ()
    same: bool = False
    agrees: bool = False
    outputs: tuple[Compared, ...] = ()


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
    """What a set-up loaded; ``after_load`` tells whether it has that function."""

    loaded_constants: tuple[GivenWeight, ...] = ()
    after_load: bool = False
