"""Family config: the text, the platform, the name. Files and versions are in ``files``.

The refusals of a config that parses are the second half of rule 1; their messages are those of a real core.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple

from aotidoctor.model.serving_config import TOP, ConfigMessage, Given, ModelConfig, Position, TensorConfig, written_text
from aotidoctor.triton.open_models import BACKEND, DEFAULT_FILE, LIBTORCH, LIBTORCH_FILE
from aotidoctor.triton.serving import PLATFORM, Consequence, Family, Needs, Remark, RuleResult, ServedModel, Settled
from aotidoctor.triton.text_format import enum_of, is_true, numbers_of, text_of, texts_of

# Refusals of a sequence batcher by the core.
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


# Other refusals by the core.
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


# The rules.
RULES = Family("config")

_HINTS = (
    ("//", "only # begins a comment: write # instead of //"),
    ("default_model_name", "the field is called default_model_filename"),
)


@RULES.rule("R1", "the server refuses config.pbtxt", Consequence.FAILS_TO_LOAD, needs=Needs.NOTHING, last_seen="26.11")
def text_parses(model: ServedModel) -> RuleResult:
    """The text must parse as a model configuration in protobuf's text format, with values that the core accepts.

    Versions: all.
    Consequence: the model is not loaded; the server reports "failed to read text proto from" and the parser's line, or
    the missing value.
    How it was seen: run on a real server core with 325 texts. It does not parse, among others: comments with two
    slashes (the README of the backend has them), a comma after the last element of a list, an enumerator in quotes, an
    unknown field, a field given twice, two schedulers, a parameter without its braces, a byte order mark. It later
    refuses, among others: tensors without name, type or dims, a preferred batch size beyond max_batch_size, two
    controls of one kind.
    Remedy: correct the reported line; a list ends without a comma, an enumerator has no quotes, and a parameter is
    written { key: "K" value { string_value: "V" } }.
    """
    if model.parse_problem is None:
        yield from tuple(refusals(model))
        return
    lines = model.text.split("\n")
    line = lines[model.parse_at.line - 1] if model.parse_at is not None and model.parse_at.line <= len(lines) else ""
    yield Remark(
        kind="does-not-parse",
        message="the model is not loaded: the server reports 'failed to read text proto from' and the place.",
        observed=model.parse_problem,
        expected="protobuf text format of inference.ModelConfig",
        remedy=_parse_hint(model.text, line, model.parse_problem),
        at=model.parse_at or TOP,
        facts={"text": line.strip()[:160]},
    )


def _parse_hint(text: str, line: str, problem: str) -> str:
    if text.startswith("\ufeff"):
        return "Save the file without a byte order mark."
    for sign, hint in _HINTS:
        if sign in line:
            return hint[0].upper() + hint[1:] + "."
    if "is in quotes" in problem:
        return "Remove the quotes."
    if "expected a string in quotes" in problem:
        return "Put it in quotes."
    if line.strip()[:1] in ("]", "}") or problem.endswith('found "]"'):
        return "Remove the comma after the last element of the list."
    if 'expected "{"' in problem and "value" in line:
        return 'Write a parameter as { key: "K" value { string_value: "V" } }.'
    return "Correct this place; field names and types are those of Triton's model_config.proto."


@RULES.rule(
    "R6", "the name is not that of the folder", Consequence.FAILS_TO_LOAD, needs=Needs.CONFIG, last_seen="26.06"
)
def name_is_the_folders(model: ServedModel) -> RuleResult:
    """A name in the config must be the name of the model's folder.

    Versions: all.
    Consequence: the model is not loaded: "directory name must equal model name".
    How it was seen: run on a real server core.
    Remedy: remove the name, or rename the folder.
    """
    name = model.config.name if model.config is not None else None
    if name is None or name.value in ("", model.name):
        return
    yield Remark(
        kind="name",
        message="the model is not loaded: directory name must equal model name.",
        observed=f'name: "{name.value}"',
        expected=f'"{model.name}", the name of the folder, or no name',
        remedy=f'Remove the name, or write "{model.name}".',
        at=name.at,
    )


# The platform: which loader the server uses for the model.
@RULES.rule("R2", "the platform is not torch_aoti", Consequence.FAILS_TO_LOAD, needs=Needs.CONFIG, last_seen="26.06")
def platform_is_exact(model: ServedModel) -> RuleResult:
    """The platform must be exactly torch_aoti; the backend must be pytorch or omitted.

    Versions: all; up to 26.02 the platform is not known at all.
    Consequence: without a platform, backend "pytorch" and default_model_filename "model.pt2" both mean
    pytorch_libtorch, the TorchScript loader, which cannot read an AOTInductor package. A misspelt platform is refused:
    "unexpected platform type" or "unexpected 'platform' and 'backend' pair".
    How it was seen: read in the source of the server's core up to 26.06, run on a core of 24.10 for the messages.
    Remedy: platform: "torch_aoti".
    """
    config, settled = model.config, model.settled
    if config is None or settled is None:
        return
    if settled.platform != PLATFORM:
        # R3 is about a platform that was detected.
        yield from () if settled.platform_from == "detected" else (_wrong_platform(model, config, settled),)
        return
    backend = config.backend
    if backend is not None and backend.value not in ("", BACKEND):
        yield Remark(
            kind="backend",
            message="the model is not loaded: unexpected 'platform' and 'backend' pair, got:"
            f"{PLATFORM}, {backend.value}.",
            observed=f'backend: "{backend.value}"',
            expected=f'backend: "{BACKEND}", or none',
            remedy="Remove the backend, or write pytorch.",
            at=backend.at,
        )
    if model.release.before("26.03"):
        yield Remark(
            kind="release",
            message=f"the model is not loaded: unexpected platform type '{PLATFORM}' for {model.name}.",
            observed=f"Triton {model.release.name}",
            expected="Triton 26.03 or later; 26.05 is the first that can name its inputs",
            remedy="Use a later release of the server.",
            at=config.platform.at if config.platform is not None else TOP,
        )


def _wrong_platform(model: ServedModel, config: ModelConfig, settled: Settled) -> Remark:
    place = config.platform or config.backend or config.default_model_filename
    if settled.platform == LIBTORCH:
        message = f"the server treats it as TorchScript ({LIBTORCH}) and cannot load the package."
    elif config.platform is None:
        message = f"the model is not loaded: unexpected platform type '' for {model.name}."
    elif config.backend is not None:
        message = f"the model is not loaded: unexpected 'platform' and 'backend' pair, got:{settled.platform}, "
        message += f"{config.backend.value}."
    else:
        message = f"the model is not loaded: unexpected platform type '{settled.platform}' for {model.name}."
    platform = written_text(config.platform)
    near = difflib.SequenceMatcher(None, platform.lower(), PLATFORM).ratio() > 0.7
    return Remark(
        kind="misspelt" if near else "missing" if not platform else "other",
        message=message,
        observed=f'platform: "{platform}"'
        if platform
        else f"no platform; the server makes it {settled.platform or 'nothing'}",
        expected=f'platform: "{PLATFORM}"',
        remedy=f'Write platform: "{PLATFORM}". The other rules are checked as if it were set.',
        at=place.at if place is not None else TOP,
        file=model.config_path or model.path,
    )


@RULES.rule("R3", "the platform is left to detection", Consequence.FAILS_TO_LOAD, last_seen="26.06")
def platform_is_stated(model: ServedModel) -> RuleResult:
    """Without platform, backend and file name, the server looks at the files of the first version directory.

    Versions: 26.04 and later detect torch_aoti if model.pt2 is the only model file; 26.03 treats it as TorchScript.
    Consequence: on 26.03 the model does not load. Later it loads, until a model.pt appears beside model.pt2 (which
    wins) or another directory sorts first.
    How it was seen: read in the source of the server's core.
    Remedy: platform: "torch_aoti" in config.pbtxt.
    """
    settled = model.settled
    if settled is None or settled.platform_from != "detected":
        return
    first = min((version.directory for version in model.versions), default="the first folder")
    if settled.platform == PLATFORM:
        yield Remark(
            kind="detected",
            consequence=Consequence.WASTE,
            message=f"the server finds {PLATFORM} by itself, only from {DEFAULT_FILE} in the first folder; "
            f"a {LIBTORCH_FILE} next to it would turn it into TorchScript.",
            observed=f"no platform; {DEFAULT_FILE} in {first}",
            expected=f'platform: "{PLATFORM}"',
            remedy=f'Write platform: "{PLATFORM}".',
            at=TOP,
            file=model.config_path or model.path,
        )
        return
    beside = model.release.since("26.04")
    why = f"{LIBTORCH_FILE} goes before {DEFAULT_FILE}" if beside else f"{model.release.name} detects only the backend"
    yield Remark(
        kind="taken-for-torchscript",
        message=f"the server treats it as TorchScript ({LIBTORCH}): {why}.",
        observed="no platform, no backend, no default_model_filename",
        expected=f'platform: "{PLATFORM}"',
        remedy=f'Write platform: "{PLATFORM}" and default_model_filename: "{DEFAULT_FILE}".',
        at=TOP,
        file=model.config_path or model.path,
    )
