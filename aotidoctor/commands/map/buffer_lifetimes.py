"""Follow the memory of run_impl: which buffer is allocated before which call, and after which it is given back.

A buffer has owners: handles that hold its memory. A reuse moves the handle, a view adds one, ``reset`` ends one. With
the last one the memory ends; what is never reset lives until the function returns.

Sizes are those of the storage as its sizes and strides need it. Results that an operator allocates itself have the
sizes that the wrapper asserts; what an operator needs in between is in no package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aotidoctor.model.expr import Expr, Num, Opaque, evaluate, product_of, sum_of
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.readers.contract.input_leaves import SymbolTable, read_symbols
from aotidoctor.readers.contract.kernel_calls import PROXY, arguments_of
from aotidoctor.readers.contract.output_leaves import element_type
from aotidoctor.readers.contract.run_impl import Body
from aotidoctor.readers.contract.wrapper_statements import Statement

# Statements that give memory another owner.
_RENAMED = ("reuse", "own", "move")


@record
class Lifetime:
    """A buffer between calls ``first`` and ``last``, both included; ``names`` are all names of its memory."""

    name: str
    first: int
    last: int
    names: tuple[str, ...]
    dtype: str | None = None
    shape: tuple[Expr, ...] | None = None
    size: Expr | None = None
    device: str | None = None
    pool: str | None = None


@dataclass(slots=True)
class _Memory:
    """One piece of memory while the statements are followed."""

    name: str
    first: int
    last: int
    pool: str | None
    names: dict[str, None] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)


def lifetimes_of(body: Body) -> dict[str, Lifetime]:
    """The buffers that run_impl allocates, by their first name, in the order in which they are made."""
    end = max(0, len(body.calls) - 1)
    places = {id(call): at for at, call in enumerate(body.calls)}
    found: dict[str, _Memory] = {}
    of_name: dict[str, _Memory] = {}
    position = 0

    def make(name: str, first: int, pool: str | None) -> None:
        memory = _Memory(name=name, first=first, last=end, pool=pool)
        memory.names[name] = None
        memory.owners.add(name)
        found[name] = of_name[name] = memory

    for event in body.events:
        if event.kind == "call":
            position = places[id(event)]
            for name in _results_of(event):
                if name not in of_name:
                    make(name, position, None)
            position += 1
        elif event.kind == "allocate":
            # What has no call after it is made for what is returned.
            make(event.name, min(position, end), event.source or None)
        elif event.kind in (*_RENAMED, "view") and (known := of_name.get(event.source)) is not None:
            known.names[event.name] = None
            known.owners.add(event.name)
            of_name[event.name] = known
            if event.kind in _RENAMED:
                known.owners.discard(event.source)
        elif event.kind == "release" and (known := of_name.get(event.name)) is not None and event.name in known.owners:
            known.owners.discard(event.name)
            if not known.owners:
                known.last = max(known.first, position - 1)
    symbols = read_symbols(body)
    return {name: _described(memory, body, symbols) for name, memory in found.items()}


def _results_of(call: Statement) -> list[str]:
    """The results that an operator may make: ``buf1`` of ``&buf1_handle``, of a custom one its unknown buffers."""
    if call.function == PROXY:
        return [name for name in arguments_of(call) if name.startswith("buf")]
    words = (word.strip(" ){}") for word in call.arguments.split(","))
    return [word[1:].removesuffix("_handle") for word in words if word.startswith("&") and word.endswith("_handle")]


def _described(memory: _Memory, body: Body, symbols: SymbolTable) -> Lifetime:
    allocated = body.buffers.get(memory.name)
    asserted = next((one for one in body.assertions if one.name == memory.name), None)
    dtype = allocated.dtype if allocated is not None else asserted.dtype if asserted is not None else None
    dtype = dtype or element_type(memory.name, body)
    sizes = allocated.shape if allocated is not None else asserted.sizes if asserted is not None else None
    strides = allocated.strides if allocated is not None else asserted.strides if asserted is not None else None
    shape = None if sizes is None else tuple(map(symbols.read, sizes))
    steps = None if strides is None else tuple(map(symbols.read, strides))
    return Lifetime(
        name=memory.name,
        first=memory.first,
        last=memory.last,
        names=tuple(memory.names),
        dtype=dtype,
        shape=shape,
        size=storage_bytes(dtype, shape, steps),
        device=allocated.device_type if allocated is not None else None,
        pool=memory.pool,
    )


def storage_bytes(
    dtype: str | None, shape: tuple[Expr, ...] | None, strides: tuple[Expr, ...] | None = None
) -> Expr | None:
    """The bytes that a tensor's storage needs; None where something of it is not known."""
    item = ITEMSIZE.get(dtype or "")
    if item is None or shape is None or any(isinstance(size, Opaque) for size in shape):
        return None
    if any(size == Num(0) for size in shape):
        return Num(0)
    elements = product_of(shape) if shape else Num(1)
    if strides is not None and not any(isinstance(step, Opaque) for step in strides):
        numbers = [evaluate(one, {}) for one in (*shape, *strides)]
        if all(number is not None for number in numbers):
            spans = zip(shape, strides, strict=False)
            reach = [product_of((sum_of((size, Num(-1))), step)) for size, step in spans]
            elements = sum_of((*reach, Num(1)))
    return product_of((Num(item), elements))


def bytes_in(size: Expr | None, sizes: Mapping[str, int]) -> int | None:
    """The number behind ``size`` where the symbols have these values."""
    return None if size is None else evaluate(size, sizes)
