"""A Triton kernel of a GPU package, as the wrapper launches it."""

from __future__ import annotations

from aotidoctor.model.record import record


@record
class Launch:
    """A Triton kernel.

    ``inputs`` are the positions of parameters that are only read; ``source`` is the Triton source and ``line`` where it
    begins; ``embedded`` tells that the device code is inside the shared object, ``guarded`` that an empty grid is not
    launched.
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
