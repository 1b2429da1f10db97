"""Refusals by the server's core of a config that parses; the second half of rule 1.

The messages are those of a real core.
"""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.model.serving import Remark, ServedModel
from aotidoctor.model.serving_config import ConfigMessage, Given, ModelConfig, Position, TensorConfig, written_text
from aotidoctor.triton.rules.core_sequence import sequence_refusals
from aotidoctor.triton.text_format import enum_of, is_true, numbers_of, texts_of

LIBRARY = "libtriton_pytorch.so"


def refusals(model: ServedModel) -> Iterator[Remark]:
    """Yield everything that keeps the core from passing the model to its backend."""
    config = model.config
    if config is None:
        return
    if config.batch_size < 0 and config.max_batch_size is not None:
        yield _refused("'max_batch_size' must be non-negative value", str(config.batch_size), config.max_batch_size.at)
    for side, tensors in (("input", config.inputs), ("output", config.outputs)):
        for tensor in tensors:
            yield from _tensor(tensor, side, model)
    if config.scheduling is not None and isinstance(config.scheduling.value, ConfigMessage):
        yield from _scheduling(config, config.scheduling.name, config.scheduling.value)
    for library in texts_of(config.tree, "runtime"):
        if library.value not in ("", LIBRARY):
            yield _refused(f"unable to find backend library '{library.value}'", library.value, library.at, "runtime")
    yield from _batch_inputs(config)
    cache, policy = config.tree.message("response_cache"), config.tree.message("model_transaction_policy")
    enabled = _flagged(cache, "enable") if cache is not None else []
    if enabled and policy is not None and _flagged(policy, "decoupled"):
        words = "Response Cache does not currently support a model with 'decoupled' transaction policy"
        yield _refused(words, "both", enabled[0].at)


def _refused(words: str, observed: str, at: Position, subject: str | None = None) -> Remark:
    return Remark(
        kind="refused",
        message=f"the model is not loaded: {words}.",
        observed=observed,
        expected="a config that the server's core takes",
        subject=subject,
        remedy="Correct this value.",
        at=at,
    )


def _tensor(tensor: TensorConfig, side: str, model: ServedModel) -> Iterator[Remark]:
    label = f"model {side} '{tensor.label}'"
    if not written_text(tensor.name):
        yield _refused(f"model {side} must specify 'name'", "no name", tensor.at)
    if tensor.type == "TYPE_INVALID":
        yield _refused(f"{label} must specify 'data_type'", "no data_type", tensor.type_at, tensor.label)
    if not tensor.dims:
        yield _refused(f"{label} must specify 'dims'", "no dims", tensor.at, tensor.label)
    for dim in tensor.dims:
        if dim.value < 1 and dim.value != -1:
            words = f"{label} dimension must be integer >= 1, or -1 to indicate a variable-size dimension"
            yield _refused(words, f"a dimension of {dim.value}", dim.at, tensor.label)
    form = enum_of(tensor.tree, "format", "ModelInput.Format")
    if form is not None and form.value in ("FORMAT_NHWC", "FORMAT_NCHW") and len(tensor.dims) != 3:
        yield _refused(f"model {side} NHWC/NCHW require 3 dims", form.value, form.at, tensor.label)
    for flag in _flagged(tensor.tree, "is_shape_tensor"):
        words = "shape tensors are only supported for TensorRT platform"
        yield _refused(words, "is_shape_tensor", flag.at, tensor.label)
    for file in texts_of(tensor.tree, "label_filename"):
        if file.value and file.value not in model.loose:
            words = f"failed to open text file for read {model.path}/{file.value}: No such file or directory"
            yield _refused(words, file.value, file.at, tensor.label)


def _flagged(message: ConfigMessage, name: str) -> list[Given[str]]:
    return [given for given in texts_of(message, name) if is_true(given.value)]


def _scheduling(config: ModelConfig, name: str, scheduling: ConfigMessage) -> Iterator[Remark]:
    match name:
        case "dynamic_batching":
            for size in numbers_of(scheduling, "preferred_batch_size"):
                if size.value <= 0:
                    yield _refused("dynamic batching preferred size must be positive", str(size.value), size.at)
                elif size.value > config.batch_size:
                    words = "dynamic batching preferred size must be <= max batch size"
                    yield _refused(words, f"{size.value} with max_batch_size {config.batch_size}", size.at)
            yield from _priority(scheduling)
        case "sequence_batching":
            for words, observed, at in sequence_refusals(config, scheduling):
                yield _refused(words, observed, at)
        case _:
            words = "ensemble scheduling cannot be set for a model whose platform is not ensemble"
            yield _refused(words, name, scheduling.at)


def _priority(batching: ConfigMessage) -> Iterator[Remark]:
    levels, default = numbers_of(batching, "priority_levels"), numbers_of(batching, "default_priority_level")
    count = levels[-1].value if levels else 0
    chosen = default[-1].value if default else 0
    if count > 0 and not 1 <= chosen <= count:
        at = default[-1].at if default else levels[-1].at
        yield _refused(f"default priority level must be in range [1, {count}]", str(chosen), at)
    for policy in batching.messages("priority_queue_policy") if count > 0 else ():
        for key in numbers_of(policy, "key"):
            if not 1 <= key.value <= count:
                words = f"priority queue policy must have priority level in range [1, {count}]"
                yield _refused(words, str(key.value), key.at)
    ordered = _flagged(batching, "preserve_ordering")
    if count > 1 and ordered:
        words = "Only one priority level is allowed when 'preserve_ordering' is true"
        yield _refused(words, f"{count} levels", ordered[0].at)


def _batch_inputs(config: ModelConfig) -> Iterator[Remark]:
    known = {tensor.label for tensor in config.inputs}
    for item in config.batch_inputs:
        for source in texts_of(item, "source_input"):
            if source.value not in known:
                yield _refused(f"unknown source input name '{source.value}'", source.value, source.at)
        kind = enum_of(item, "data_type", "DataType")
        if kind is None or kind.value not in ("TYPE_INT32", "TYPE_FP32"):
            words = "batch input data type must be TYPE_INT32 or TYPE_FP32"
            yield _refused(words, written_text(kind) or "no data_type", (kind or item).at)
