"""Refusals by the server's core of a sequence batcher; part of rule 1. The messages are the core's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from aotidoctor.model.serving_config import ConfigMessage, ModelConfig, Position, written_text
from aotidoctor.triton.text_format import enum_of, numbers_of, text_of

_VALUES = ("int32_false_true", "fp32_false_true", "bool_false_true")
_EITHER = "'int32_false_true', 'fp32_false_true' or 'bool_false_true'"
_ID = "CONTROL_SEQUENCE_CORRID"
_ID_TYPES = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")


class Refusal(NamedTuple):
    """The core's message, the text that it refuses, and its position."""

    words: str
    observed: str
    at: Position


def sequence_refusals(config: ModelConfig, sequence: ConfigMessage) -> Iterator[Refusal]:
    """Yield everything in ``sequence_batching`` that keeps the core from loading the model."""
    for oldest in sequence.messages("oldest"):
        for size in numbers_of(oldest, "preferred_batch_size"):
            if not 0 < size.value <= config.batch_size:
                words = "sequence batching preferred batch size must be <= max batch size"
                yield Refusal(words, f"{size.value} with max_batch_size {config.batch_size}", size.at)
    for direct in sequence.messages("direct"):
        share = text_of(direct, "minimum_slot_utilization")
        if share is not None and not _is_share(share.value):
            words = "sequence batching minimum slot utilization must be in range (0.0, 1.0]"
            yield Refusal(words, share.value, share.at)
    kinds: set[str] = set()
    names: set[str] = set()
    for tensor in sequence.messages("control_input"):
        controls = tensor.messages("control")
        given = text_of(tensor, "name")
        name = written_text(given)
        if controls and not name:
            yield Refusal("sequence batching control tensor must have a name", "no name", tensor.at)
        elif controls and name in names:
            words = f"sequence batching control tensor '{name}' is specified for multiple control kinds"
            yield Refusal(words, name, (given or tensor).at)
        names.add(name)
        for control in controls:
            yield from _control(control, kinds)


def _is_share(text: str) -> bool:
    try:
        return 0.0 <= float(text.rstrip("fF")) <= 1.0
    except ValueError:
        return False


def _control(control: ConfigMessage, seen: set[str]) -> Iterator[Refusal]:
    given = enum_of(control, "kind", "ModelSequenceBatching.Control.Kind")
    kind = written_text(given) or "CONTROL_SEQUENCE_START"
    if kind in seen:
        yield Refusal(f"sequence batching specifies multiple {kind} tensors", kind, control.at)
    seen.add(kind)
    values = [name for name in _VALUES if control.first(name) is not None]
    if kind == _ID:
        if values:
            yield Refusal(f"sequence batching must not specify either {_EITHER} for {_ID}", values[0], control.at)
        type_ = enum_of(control, "data_type", "DataType")
        if written_text(type_) not in _ID_TYPES:
            words = f"unexpected data type for control {_ID}. Allowed data types are {', '.join(_ID_TYPES)}"
            yield Refusal(words, written_text(type_) or "no data_type", (type_ or control).at)
    elif not values:
        yield Refusal(f"sequence batching must specify either {_EITHER} for {kind}", "none of them", control.at)
    elif len(values) > 1:
        words = f"sequence batching specifies more than one from {_EITHER} for {kind}"
        yield Refusal(words, ", ".join(values), control.at)
    elif len(entries := control.all(values[0])) != 2:
        words = f"sequence batching control '{values[0]}' must have exactly 2 entries for {kind}"
        yield Refusal(words, f"{len(entries)} entries", entries[0].at)
