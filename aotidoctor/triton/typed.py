"""From the tree of config.pbtxt to the fields that rules ask for. Applies no default."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.serving_config import (
    TOP,
    ConfigMessage,
    ConfigScalar,
    ControlConfig,
    Given,
    InstanceGroup,
    ModelConfig,
    ParameterConfig,
    StateConfig,
    TensorConfig,
    written,
)
from aotidoctor.triton.schema import enumerators
from aotidoctor.triton.text_format import integer, is_true
from aotidoctor.triton.tokens import comments

SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")


def empty_config() -> ModelConfig:
    """The config of a model without config.pbtxt."""
    return ModelConfig(tree=ConfigMessage(fields=(), at=TOP))


def typed(tree: ConfigMessage, text: str) -> ModelConfig:
    """The config that ``tree``, read from ``text``, spells."""
    sequence = tree.message("sequence_batching")
    return ModelConfig(
        tree=tree,
        name=text_of(tree, "name"),
        platform=text_of(tree, "platform"),
        backend=text_of(tree, "backend"),
        default_model_filename=text_of(tree, "default_model_filename"),
        max_batch_size=_number(tree, "max_batch_size"),
        inputs=tuple(_tensor(item) for item in tree.messages("input")),
        outputs=tuple(_tensor(item) for item in tree.messages("output")),
        instance_groups=tuple(_group(item) for item in tree.messages("instance_group")),
        parameters=_parameters(tree),
        scheduling=next((item for item in tree.fields if item.name in SCHEDULERS), None),
        controls=tuple(_control(item) for item in sequence.messages("control_input")) if sequence else (),
        states=tuple(_state(item) for item in sequence.messages("state")) if sequence else (),
        batch_inputs=tree.messages("batch_input"),
        batch_outputs=tree.messages("batch_output"),
        warmups=tree.messages("model_warmup"),
        cc_model_filenames=dict(_pair(item) for item in tree.messages("cc_model_filenames")),
        comments=comments(text),
    )


def enum_of(message: ConfigMessage, name: str, enum: str) -> Given[str] | None:
    """The enumerator of a field, also where its number is written; a number without a name stays one."""
    found, names = text_of(message, name), enumerators(enum)
    if found is None or found.value in names:
        return found
    try:
        number = integer(found.value)
    except ValueError:
        return found
    return Given(value=names[number], at=found.at) if 0 <= number < len(names) else found


def numbers_of(message: ConfigMessage, name: str) -> tuple[Given[int], ...]:
    """The whole numbers of a repeated field."""
    return tuple(Given(value=integer(item.value), at=item.at) for item in texts_of(message, name))


def texts_of(message: ConfigMessage, name: str) -> tuple[Given[str], ...]:
    """The scalars of a repeated field, as text."""
    found = (item.value for item in message.all(name))
    return tuple(Given(value=item.text, at=item.at) for item in found if isinstance(item, ConfigScalar))


def text_of(message: ConfigMessage, name: str) -> Given[str] | None:
    """The last one counts: before it only defaults may stand."""
    return next(reversed(texts_of(message, name)), None)


def _number(message: ConfigMessage, name: str) -> Given[int] | None:
    return next(reversed(numbers_of(message, name)), None)


def _flag(message: ConfigMessage, name: str) -> Given[bool] | None:
    found = text_of(message, name)
    return None if found is None else Given(value=is_true(found.value), at=found.at)


def _tensor(message: ConfigMessage) -> TensorConfig:
    reshape = message.message("reshape")
    return TensorConfig(
        at=message.at,
        name=text_of(message, "name"),
        data_type=enum_of(message, "data_type", "DataType"),
        dims=numbers_of(message, "dims"),
        reshape=numbers_of(reshape, "shape") if reshape is not None else None,
        optional=_flag(message, "optional"),
        ragged=_flag(message, "allow_ragged_batch"),
        tree=message,
    )


def _group(message: ConfigMessage) -> InstanceGroup:
    name = text_of(message, "name")
    return InstanceGroup(
        at=message.at,
        name=name.value if name is not None else None,
        kind=enum_of(message, "kind", "ModelInstanceGroup.Kind"),
        count=_number(message, "count"),
        gpus=numbers_of(message, "gpus"),
        profile=texts_of(message, "profile"),
        tree=message,
    )


def _parameters(tree: ConfigMessage) -> tuple[ParameterConfig, ...]:
    """One per key, the last one: a map has no duplicates."""
    found: dict[str, ParameterConfig] = {}
    for entry in tree.messages("parameters"):
        key = text_of(entry, "key") or Given(value="", at=entry.at)
        value = entry.message("value")
        text = text_of(value, "string_value") if value is not None else None
        found[key.value] = ParameterConfig(at=entry.at, key=key, value=text)
    return tuple(found.values())


def _control(message: ConfigMessage) -> ControlConfig:
    controls: Sequence[ConfigMessage] = message.messages("control")
    kinds = (enum_of(item, "kind", "ModelSequenceBatching.Control.Kind") for item in controls)
    types = (enum_of(item, "data_type", "DataType") for item in controls)
    return ControlConfig(
        at=message.at,
        name=text_of(message, "name"),
        # The first enumerator is what an absent field means.
        kinds=tuple(kind.value if kind is not None else "CONTROL_SEQUENCE_START" for kind in kinds),
        data_type=next((kind for kind in types if kind is not None), None),
    )


def _state(message: ConfigMessage) -> StateConfig:
    return StateConfig(
        at=message.at,
        input_name=text_of(message, "input_name"),
        output_name=text_of(message, "output_name"),
        data_type=enum_of(message, "data_type", "DataType"),
        dims=numbers_of(message, "dims"),
    )


def _pair(entry: ConfigMessage) -> tuple[str, str]:
    return written(text_of(entry, "key")), written(text_of(entry, "value"))
