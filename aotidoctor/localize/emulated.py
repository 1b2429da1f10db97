"""What the emulation of a CUDA package saw, as records: typed reading of the ``emulate`` job's result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aotidoctor.localize.blame import Failure
from aotidoctor.localize.blame.failure import INDEX
from aotidoctor.model.case import Case
from aotidoctor.model.json_types import JsonObject, JsonValue, items, objects
from aotidoctor.model.run import Outcome

_INDEX = re.compile(r"index out of bounds: (?:0 <= )?(?P<variable>\w+) < (?P<bound>[^\s\"]+(?: [-+] [^\s\"]+)*)")
_MOST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulated:
    """One finding.

    ``kind`` is ``out-of-bounds``, ``misaligned``, ``use-after-free``, ``uninitialized``, ``race``, ``duplicate-index``,
    ``int32-overflow``, ``device-assert``, ``nan``, ``inf`` or ``operator-refused``. ``launch`` counts launches from 1,
    None for what an operator did; ``line`` is the line of the kernel's own text, ``wrapper_line`` that of the wrapper.
    ``program`` is its place in the grid and ``lane`` the element of its block, None where every program has the same.
    ``buffer`` is the wrapper's name, ``offset`` and ``extent`` count elements as the kernel reads them. ``count`` is
    how many lanes.
    """

    kind: str
    launch: int | None
    kernel: str | None
    line: int | None
    wrapper_line: int | None
    text: str
    grid: tuple[int, ...]
    program: tuple[int, ...] | None
    lane: int | None
    access: str
    argument: str | None
    buffer: str | None
    offset: int | None
    extent: int | None
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    message: str
    count: int
    output: str | None = None
    value: int | None = None

    @property
    def place(self) -> str:
        """``launch 3 triton_poi_fused_0, program 0, lane 5``."""
        if self.launch is None:
            return self.kernel or self.output or "the wrapper"
        parts = [f"launch {self.launch} {self.kernel}"]
        if self.program is not None:
            used = self.program if any(self.program[1:]) else self.program[:1]
            parts.append(f"program {'x'.join(map(str, used))}")
        if self.lane is not None:
            parts.append(f"lane {self.lane}")
        return ", ".join(parts)

    @property
    def failure(self) -> Failure | None:
        """The check in the kernel's text that failed; None for anything but an index."""
        found = _INDEX.search(self.message)
        if self.kind != "device-assert" or found is None:
            return None
        return Failure(
            kind=INDEX, kernel=self.kernel, line=self.wrapper_line, variable=found["variable"], bound=found["bound"]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulation:
    """The whole run: ``launched`` calls of kernels, of them ``done``; ``skipped`` are ``(what, why, times)``.

    ``quick`` of them were looked at by their addresses alone. ``problem`` says why nothing was emulated at all.
    """

    findings: tuple[Emulated, ...] = ()
    skipped: tuple[tuple[str, str, int], ...] = ()
    launched: int = 0
    done: int = 0
    quick: int = 0
    problem: str | None = None
    seconds: float = 0.0


def read_emulation(outcome: Outcome) -> Emulation | None:
    """The result of the job; None where it did not get that far."""
    found = outcome.result.get("emulation")
    if not isinstance(found, dict):
        return None
    launches = objects(found.get("launches"))
    return Emulation(
        findings=tuple(_finding(item) for item in objects(found.get("findings"))),
        skipped=tuple(
            (str(item.get("what"))[:_MOST], str(item.get("why"))[:_MOST], _int(item.get("times")) or 1)
            for item in objects(found.get("not_emulated"))
        ),
        launched=_int(found.get("launched")) or 0,
        done=sum(item.get("state") in ("done", "empty") for item in launches),
        quick=sum(item.get("way") == "quick" for item in launches),
        problem=str(found["problem"])[:_MOST] if found.get("problem") else None,
        seconds=sum(value for item in launches if isinstance(value := item.get("seconds"), int | float)),
    )


def _finding(item: JsonObject) -> Emulated:
    program = item.get("program")
    return Emulated(
        kind=str(item.get("kind")),
        launch=_int(item.get("launch")),
        kernel=_text(item.get("kernel")),
        line=_int(item.get("line")),
        wrapper_line=_int(item.get("wrapper_line")),
        text=(_text(item.get("text")) or "")[:_MOST],
        grid=_ints(item.get("grid")),
        program=_ints(program) if isinstance(program, list) else None,
        lane=_int(item.get("lane")),
        access=_text(item.get("access")) or "",
        argument=_text(item.get("argument")),
        buffer=_text(item.get("buffer")),
        offset=_int(item.get("offset")),
        extent=_int(item.get("extent")),
        sizes=_ints(item.get("sizes")),
        strides=_ints(item.get("strides")),
        message=(_text(item.get("message")) or "")[:_MOST],
        count=_int(item.get("count")) or 1,
        output=_text(item.get("output")),
        value=_int(item.get("value")),
    )


def _int(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _ints(value: JsonValue) -> tuple[int, ...]:
    return tuple(one for one in items(value) if isinstance(one, int))


def shown_buffer(case: Case, name: str | None) -> tuple[str, str | None]:
    """What people call the wrapper's buffer, and the caller's path where it is an input."""
    if name is None:
        return "a null pointer", None
    contract = case.contract
    if contract is None:
        return name, None
    for leaf in contract.leaves:
        if name in (leaf.generated_name, leaf.path):
            return leaf.path, leaf.path
    names: Mapping[str, str] = {one.name: one.original_fqn or one.name for one in contract.constants}
    return names.get(name, name), None


def element_text(found: Emulated) -> str:
    """``[100, 0] of 100 rows`` for a row of a contiguous tensor, else ``[2400] of 2400 elements``."""
    if found.offset is None or found.extent is None:
        return ""
    whole = len(found.sizes) > 1 and 0 not in found.sizes and _is_contiguous(found.sizes, found.strides)
    if whole and found.offset >= 0 and _count(found.sizes) == found.extent:
        index, rest = [], found.offset
        for step in found.strides:
            index.append(rest // step)
            rest %= step
        return f"[{', '.join(map(str, index))}] of {found.sizes[0]} rows"
    return f"[{found.offset}] of {found.extent} elements"


def _is_contiguous(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    step = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if stride != step:
            return False
        step *= size
    return True


def _count(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
