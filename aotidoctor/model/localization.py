"""Where a failure is: the place in the compiled code, and everything that points at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """One line of a source file. ``number`` counts from 1; ``marked`` is the line in question."""

    number: int
    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferValues:
    """Statistics of one buffer that a kernel read or wrote. Counts are elements; bounds are of the finite values.

    ``role`` is ``in`` or ``out``. ``error`` is the largest difference from the reference, in absolute terms, None where
    there is nothing to compare with; ``matches`` names what it was compared with.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelValues:
    """What one call read and wrote. ``index`` is its place in the timeline of the first call of the model."""

    index: int
    name: str
    kind: str
    buffers: tuple[BufferValues, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Localization:
    """The place of a failure.

    ``culprit`` is the kernel, operator or node; ``how`` says which method named it; ``chain`` is the blame chain in one
    line (kernel ← input element; bound; origin). ``fault_address`` and ``fault_target`` are the address of a memory
    fault and what lies there. ``comparison`` are the facts of the comparison with the reference, by output path.
    """

    culprit: str | None = None
    how: str = ""
    chain: str | None = None
    timeline: tuple[TimelineEntry, ...] = ()
    calls_total: int = 0
    frames: tuple[Frame, ...] = ()
    fault_address: str | None = None
    fault_target: str | None = None
    values: tuple[KernelValues, ...] = ()
    first_bad: str | None = None
    bisected: str | None = None
    comparison: Mapping[str, Mapping[str, str | int | float | bool | None]] = field(default_factory=dict)
