"""How ``run_impl`` hands tensors on under other names: what the name means afterwards.

A reused buffer and a new handle are the same tensor; a view is the same memory in another form; a copy, and what a
subgraph takes or gives, have the dtype and shape of the first and perhaps its memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from aotidoctor.readers.contract.body_records import Body, Buffer, Event

_POOL = re.compile(r"aoti_torch__alloc_from_pool\((\w+), [^,]+, \w+?_dtype_(\w+?)(?:\(\))?, \d+, (\w+), \w+, &(\w+)\)$")
_RESTRIDED = re.compile(r"aoti_torch_as_strided\((\w+)_handle, (\w+), \w+, &\1_handle_restrided\)$")
_HANDED = re.compile(r"aoti_torch_(new_tensor_handle|assign_tensors_out)\((.+), &(\w+)\)$")
_VIEW_DTYPE = re.compile(r"aoti_torch_\w+_view_dtype\((.+), \w+?_dtype_(\w+?)(?:\(\))?, &(\w+)\)$")
_CLONE = re.compile(r"aoti_torch_clone\((.+), &output_handles\[(\d{1,6})\]\);?$")
_LONGEST = 20_000


def rename(body: Body, kind: str, name: str, source: str, shape: tuple[str, ...] | None) -> None:
    """``name`` is now the tensor of ``source`` (``kind`` is ``reuse``), or a ``view`` of it with ``shape``."""
    body.events.append(Event(kind=kind, name=name, other=source))
    body.renamed[name] = source
    if kind == "view":
        body.view_shapes[name] = shape
    origin = body.buffers.get(source)
    if origin is not None:
        kept = origin.shape if kind == "reuse" else shape
        strides = origin.strides if kind == "reuse" else None
        body.buffers[name] = Buffer(dtype=origin.dtype, shape=kept, device_type=origin.device_type, strides=strides)


def hand_on(body: Body, name: str, source: str) -> None:
    """What a subgraph takes or gives becomes ``name``: its dtype and shape, and perhaps its memory."""
    body.events.append(Event(kind="reuse", name=name, other=source))
    if name not in body.like or source in body.buffers:
        # Of several branches, or the start and the turns of a loop, one with a buffer tells most.
        body.like[name] = source


def allocate(body: Body, name: str, buffer: Buffer) -> None:
    """``name`` is new memory; one without elements is never read before it is written."""
    body.buffers[name] = buffer
    if "0L" not in (buffer.shape or ()):
        body.events.append(Event(kind="allocate", name=name))


def hand(body: Body, call: str, note_use: Callable[[str], None]) -> bool:
    """Whether ``call`` is one of the runtime that hands a tensor on; then it is taken note of."""
    if len(call) > _LONGEST or not (_copied(body, call) or _aliased(body, call) or _resized(body, call)):
        return False
    note_use(call)
    return True


def view_as(body: Body, call: str) -> bool:
    """Whether ``call`` makes a view with another dtype; then it is taken note of."""
    view = _VIEW_DTYPE.match(call) if "_view_dtype(" in call[:200] and len(call) < _LONGEST else None
    if view is None:
        return False
    rename(body, "view", view[3], _below(view[1]), None)
    body.view_dtypes[view[3]] = view[2]
    return True


def _copied(body: Body, call: str) -> bool:
    clone = _CLONE.match(call)
    if clone is None:
        return False
    name = f"output_handles[{clone[2]}]"
    body.outputs[int(clone[2])] = name
    body.like[name] = clone[1]
    body.events.append(Event(kind="output", name=clone[1]))
    return True


def _aliased(body: Body, call: str) -> bool:
    handed = _HANDED.match(call)
    if handed is None:
        return False
    if handed[1] == "new_tensor_handle":
        rename(body, "reuse", handed[3], handed[2], None)
    else:
        hand_on(body, handed[3].removesuffix("_handle"), _below(handed[2]))
    return True


def _resized(body: Body, call: str) -> bool:
    pool = _POOL.match(call)
    if pool is not None:
        owner = body.buffers.get(pool[1])
        kind = owner.device_type if owner is not None else ""
        allocate(body, pool[4], Buffer(dtype=pool[2], shape=body.arrays.get(pool[3]), device_type=kind))
        return True
    padded = _RESTRIDED.match(call)
    if padded is None or padded[1] not in body.buffers:
        return False
    old = body.buffers[padded[1]]
    shape = body.arrays.get(padded[2])
    body.buffers[padded[1]] = Buffer(dtype=old.dtype, shape=shape, device_type=old.device_type)
    return True


def _below(text: str) -> str:
    """The tensor that an expression views, or its name."""
    _, view, inside = text.partition("reinterpret_tensor_wrapper(")
    return inside.partition(",")[0] if view else text
