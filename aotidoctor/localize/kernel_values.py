"""The values that a watched run saw (``result["watch"]``), read into the vocabulary: one record per computing call.

Buffers get the names of wrapper.cpp (``buf0``; inputs by the user's path, constants by their original name) where the
calls of the run are those of the source, in its order; else the names of the kernel's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from aotidoctor.localize.kernel_text import is_overwritten
from aotidoctor.localize.timeline import name_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.json_types import JsonObject, JsonValue, items, objects
from aotidoctor.model.localization import BufferValues, KernelValues
from aotidoctor.model.run import Outcome
from aotidoctor.model.trace import TracedCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A watched run.

    ``written_by`` maps each output path to the number of the call that wrote it (None: an input). ``good`` are the
    paths of outputs that have the values of a node of the reference. ``places`` are the operators of the reference with
    their source lines.
    """

    calls: tuple[KernelValues, ...] = ()
    written_by: tuple[tuple[str, int | None], ...] = ()
    good: frozenset[str] = frozenset()
    compared: bool = False
    decomposition_differs: bool = False
    left_out: int = 0
    places: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    problem: str | None = None


def read_watched(case: Case, outcome: Outcome) -> Watched:
    """What the run saw; ``problem`` says why it saw nothing."""
    found = outcome.result.get("watch")
    if not isinstance(found, dict):
        return Watched(problem="the run ended before its values were reported")
    if found.get("problem"):
        return Watched(problem=str(found["problem"]))
    records = objects(found.get("calls"))
    symbols = [_symbol(record) for record in records]
    static = _static_calls(case, symbols)
    # A kernel is often called many times, and its text says the same each time.
    overwrites = cache(partial(is_overwritten, case))
    return Watched(
        calls=tuple(
            _call(case, index, record, symbols[index], static[index] if static else None, overwrites=overwrites)
            for index, record in enumerate(records)
        ),
        written_by=tuple((str(item.get("path")), _number(item.get("from"))) for item in objects(found.get("outputs"))),
        good=frozenset(str(item.get("path")) for item in objects(found.get("outputs")) if item.get("agrees") is True),
        compared=found.get("compared") is True,
        decomposition_differs=found.get("decomposition_differs") is True,
        left_out=_number(found.get("left_out")) or 0,
        places=tuple((str(item.get("target")), str(item.get("where"))) for item in objects(found.get("places"))),
        notes=tuple(str(note) for note in items(found.get("notes"))),
    )


def _symbol(record: JsonObject) -> TracedCall:
    return TracedCall(symbol=str(record.get("symbol")), argument=_number(record.get("argument")) or 0, at=0.0)


def _static_calls(case: Case, calls: Sequence[TracedCall]) -> tuple[KernelCall, ...]:
    """The calls of the source, if the run made exactly those."""
    static = case.contract.kernels if case.contract is not None else ()
    names = [name_of(case, call) for call in calls]
    known = [name_of(case, call) if item.kind == "custom" else item.name for item, call in zip(static, calls)]  # noqa: B905 - of unequal length they differ anyway
    return static if len(static) == len(calls) and names == known else ()


def _call(
    case: Case,
    index: int,
    record: JsonObject,
    call: TracedCall,
    static: KernelCall | None,
    *,
    overwrites: Callable[[str, str], bool],
) -> KernelValues:
    name = name_of(case, call)
    read = [item for item in objects(record.get("in")) if not _is_taken_over(item, name, overwrites)]
    sides = (("in", read), ("out", objects(record.get("out"))))
    return KernelValues(
        index=index,
        name=name,
        kind=call.kind.value,
        buffers=tuple(_buffer(case, role, item, static) for role, found in sides for item in found),
    )


def _is_taken_over(item: JsonObject, kernel: str, overwrites: Callable[[str, str], bool]) -> bool:
    """A buffer whose memory the kernel writes to without having read what was in it."""
    parameter = str(item.get("name") or "")
    return parameter.startswith("in_out") and overwrites(kernel, parameter)


def _buffer(case: Case, role: str, item: JsonObject, static: KernelCall | None) -> BufferValues:
    return BufferValues(
        name=_name(case, item, static),
        role=role,
        dtype=str(item.get("dtype") or ""),
        shape=tuple(_number(size) or 0 for size in items(item.get("shape"))),
        nan=_number(item.get("nan")) or 0,
        inf=_number(item.get("inf")) or 0,
        low=_float(item.get("min")),
        high=_float(item.get("max")),
        mean=_float(item.get("mean")),
        error=_float(item.get("error")),
        matches=_text(item.get("matches")),
        target=_text(item.get("target")),
        where=_text(item.get("where")),
        agrees=bool(item["agrees"]) if isinstance(item.get("agrees"), bool) else None,
        written_by=_number(item.get("from")),
        seen=item.get("constant") is not True,
    )


def _name(case: Case, item: JsonObject, static: KernelCall | None) -> str:
    parameter, position = str(item.get("name") or "?"), _number(item.get("position"))
    if static is None or position is None or not 0 <= position < len(static.arguments):
        return parameter
    return user_name(case, static.arguments[position]) or parameter


def user_name(case: Case, generated: str) -> str:
    """The user's name of a tensor of wrapper.cpp: path of an input, original name of a constant; else as it is."""
    # What an operator gives back is handed over by the address of its handle.
    generated = generated.removeprefix("&").removesuffix("_handle")
    if case.contract is None:
        return generated
    leaf = next((leaf.path for leaf in case.contract.leaves if leaf.generated_name == generated), None)
    constant = next((one.original_fqn for one in case.contract.constants if one.name == generated), None)
    return leaf or constant or generated


def _number(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: JsonValue) -> float | None:
    if isinstance(value, str):
        return float(value) if value in ("inf", "-inf", "nan") else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
