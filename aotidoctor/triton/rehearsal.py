"""What the server would do with a user's tensors, as a plan: names to slots, types, batching, device.

A client sends each tensor under a name of the config, in the type that the config gives it; the backend puts it into
the slot that its release makes of the name, and answers with the outputs behind the names of the config. The worker
does that with real tensors (job ``rehearse``), and compares with the plain call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.record import record
from aotidoctor.model.serving import Release, ServedModel
from aotidoctor.model.serving_config import ModelConfig, TensorConfig
from aotidoctor.model.serving_names import NameRow, NameTable
from aotidoctor.triton.data_types import data_types
from aotidoctor.triton.intent import Meant, meant
from aotidoctor.triton.releases import SPLITS_SINCE
from aotidoctor.triton.resolve import resolve

MERGED = 2


class CannotRehearseError(Exception):
    """There is nothing to rehearse; the text says why."""


@record
class Wire:
    """One name of the config. ``meant`` is the tensor that a client sends or expects, ``row`` the one the server takes.

    ``dtype`` is torch's name of the config's type. ``shape`` is what the backend sees of one request, the batch left
    out where the server batches; -1 is any size.
    """

    name: str
    meant: Meant
    row: NameRow
    dtype: str
    shape: tuple[int, ...]
    line: int

    @property
    def crossed(self) -> bool:
        """Whether the server takes it for another tensor than is meant."""
        return self.meant.row is not None and self.meant.row.path != self.row.path


@record
class Rehearsal:
    """The plan. ``requests`` are put together in one execution; ``splits`` tells whether the answer is taken apart.

    ``max_batch`` is 0 where the server does not batch. ``gpu`` is the index of the GPU, None for the CPU. ``notes`` say
    what is assumed.
    """

    inputs: tuple[Wire, ...]
    outputs: tuple[Wire, ...]
    wanted: int
    max_batch: int
    requests: int
    splits: bool
    gpu: int | None
    notes: tuple[str, ...] = ()


def plan(
    model: ServedModel, table: NameTable, *, requests: int | None = None, said: Mapping[str, str] | None = None
) -> Rehearsal:
    """What to rehearse of ``model``. Raises CannotRehearseError."""
    config = model.config
    if config is None or not table.read:
        raise CannotRehearseError("the server would not load it")
    release = model.release

    def wires(tensors: Sequence[TensorConfig], rows: Sequence[NameRow]) -> tuple[Wire, ...]:
        taken = resolve(rows, [tensor.label for tensor in tensors])
        return _wires(tensors, taken, meant(tensors, rows, config.comments, said or {}), release)

    inputs, outputs = wires(config.inputs, table.inputs), wires(config.outputs, table.outputs)
    _refuse_holes(inputs)
    merged, notes = _merged(config, requests)
    return Rehearsal(
        inputs=inputs,
        outputs=outputs,
        wanted=table.wanted,
        max_batch=config.batch_size,
        requests=merged,
        splits=release.since(SPLITS_SINCE),
        gpu=_gpu(model),
        notes=notes,
    )


def payload(rehearsal: Rehearsal) -> JsonObject:
    """The plan as the worker gets it."""
    return {
        "inputs": [_wire(wire) for wire in rehearsal.inputs],
        "outputs": [_wire(wire) for wire in rehearsal.outputs],
        "max_batch": rehearsal.max_batch,
        "requests": rehearsal.requests,
        "splits": rehearsal.splits,
        "gpu": rehearsal.gpu,
    }


def _wire(wire: Wire) -> JsonObject:
    row, sent = wire.row, wire.meant.row
    dims: list[JsonValue] | None = None if row.dims is None else [dim.static for dim in row.dims]
    shape: list[JsonValue] = [*wire.shape]
    return {
        "name": wire.name,
        "path": sent.path if sent is not None else None,
        "sent_slot": sent.slot if sent is not None else None,
        "slot": row.slot,
        "dtype": wire.dtype,
        "shape": shape,
        "compiled": {"dtype": row.dtype, "dims": dims, "least": row.dims[0].min if row.dims else None},
    }


def _wires(
    tensors: Sequence[TensorConfig],
    taken: Sequence[NameRow | None],
    intents: Sequence[Meant],
    release: Release,
) -> tuple[Wire, ...]:
    types = data_types(release)
    made = []
    for tensor, row, intent in zip(tensors, taken, intents, strict=True):
        written = tensor.data_type.value if tensor.data_type is not None else "no data_type"
        if row is None:
            raise CannotRehearseError(f"the server finds no tensor for the name {tensor.label}")
        if written not in types:
            raise CannotRehearseError(f"{tensor.label} is {written}, which no tensor of the backend can be")
        made.append(
            Wire(
                name=tensor.label,
                meant=intent,
                row=row,
                dtype=types[written],
                shape=tuple(size.value for size in tensor.shape),
                line=tensor.name_at.line,
            )
        )
    return tuple(made)


def _refuse_holes(inputs: Sequence[Wire]) -> None:
    """Two names for one slot leave another empty: every request fails before the compiled code is reached."""
    seen: dict[int, str] = {}
    for wire in inputs:
        if wire.row.slot in seen:
            names = f"{seen[wire.row.slot]} and {wire.name}"
            raise CannotRehearseError(f"{names} are both {wire.row.path}, so a different input is never set")
        seen[wire.row.slot] = wire.name


def _merged(config: ModelConfig, asked: int | None) -> tuple[int, tuple[str, ...]]:
    """How many requests are put together, and what to say of it."""
    batches = config.scheduling is not None and config.scheduling.name == "dynamic_batching" and config.batch_size > 1
    if not batches:
        why = "dynamic_batching with max_batch_size above 1"
        unmerged = f"one request at a time: without {why} the server never merges requests"
        return 1, (unmerged,) if (asked or 1) > 1 else ()
    return asked or MERGED, ()


def _gpu(model: ServedModel) -> int | None:
    kinds = model.settled.kinds if model.settled is not None else ()
    if not kinds or kinds[0] != "KIND_GPU":
        return None
    groups = model.instance_groups
    return groups[0].gpus[0].value if groups and groups[0].gpus else 0
