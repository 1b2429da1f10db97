"""What a child made: a compiled package, a part of a program; and what a library's functions did."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.record import record


@record
class Step:
    """A step that the compiler's switch can turn off: its name there, the operator, the user's line."""

    name: str = ""
    target: str | None = None
    where: str | None = None


@record
class Compiled:
    """A compile: how long it took, and its steps by subsystem."""

    seconds: float = 0.0
    switchable: Mapping[str, tuple[Step, ...]] | None = None


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
