"""Family parameters: the keys, which releases read the values, and with what effect."""

from __future__ import annotations

import difflib
import re

from aotidoctor.model.serving_config import PARAMETER, ParameterConfig, written_text
from aotidoctor.triton.serving import Consequence, Family, Remark, RuleResult, ServedModel

RULES = Family("parameters")

# The keys: which are read, which belong to another path, and which are misspelt.
READ_SINCE = "26.07"
INTRA, INTER = "INTRA_OP_THREAD_COUNT", "INTER_OP_THREAD_COUNT"
BOOLS = (
    "DISABLE_OPTIMIZED_EXECUTION",
    "CACHE_CLEANING_ENABLED",
    "INFERENCE_MODE",
    "DISABLE_CUDNN",
    "ENABLE_WEIGHT_SHARING",
)
COUNTS = (INTRA, INTER)
KNOWN = (*BOOLS, *COUNTS, PARAMETER)
# Keys of the TorchScript path, with the equivalent here.
ELSEWHERE = {
    "ENABLE_CACHE_CLEANING": "CACHE_CLEANING_ENABLED",
    "NUM_THREADS": INTRA,
    "NUM_INTEROP_THREADS": INTER,
    "TORCH_COMPILE_OPTIONAL_PARAMETERS": None,
    "ENABLE_JIT_EXECUTOR": None,
    "ENABLE_JIT_PROFILING": None,
    "ENABLE_TENSOR_FUSER": None,
    "MODULE_METHOD_NAME": None,
    "FORCE_CPU_ONLY_INPUT_TENSORS": None,
}
_NO_EFFECT = {
    "DISABLE_OPTIMIZED_EXECUTION": "it is a setting of TorchScript's executor",
    "CACHE_CLEANING_ENABLED": "nothing on this path reads it after parsing",
}


@RULES.rule("R43", "an unknown key", Consequence.WASTE)
def keys_are_known(model: ServedModel) -> RuleResult:
    """Keys must match exactly; unknown keys are ignored.

    Versions: all; the keys are those of the AOTInductor path. The README of the backend and the TorchScript path have
    different keys: ENABLE_CACHE_CLEANING, NUM_THREADS, NUM_INTEROP_THREADS, ENABLE_JIT_EXECUTOR and more.
    Consequence: a misspelt key does nothing.
    How it was seen: the table of keys was read in the source of 26.05.
    Remedy: use the suggested key, or remove it.
    """
    for item in model.parameters:
        key = item.key.value
        instead = None
        if key in _NO_EFFECT:
            kind, message = "no-effect", f"it does nothing for torch_aoti: {_NO_EFFECT[key]}."
        elif key in KNOWN:
            continue
        elif key in ELSEWHERE:
            kind, instead = "torchscript", ELSEWHERE[key]
            message = (
                f"it is ignored: it belongs to the TorchScript path{f'; here it is {instead}' if instead else ''}."
            )
        else:
            instead = nearest(key)
            kind = "misspelt" if instead else "unknown"
            message = f"it is ignored: no such key{f'; {instead} is near' if instead else ''}."
        yield Remark(
            kind=kind,
            consequence=Consequence.NOTE if kind == "no-effect" else Consequence.WASTE,
            message=message,
            observed=key,
            expected=instead or ("one of " + ", ".join(KNOWN) if kind == "unknown" else "no such parameter"),
            subject=key,
            remedy=f"Write {instead}." if instead else "Remove it.",
            at=item.key.at,
            facts={"suggestion": instead},
        )


def nearest(key: str) -> str | None:
    """Find the known key within three changes of a letter, in any case."""
    counted = sorted((_distance(key.upper(), known), known) for known in KNOWN)
    return counted[0][1] if counted[0][0] <= min(3, len(key) // 2) else None


def _distance(one: str, other: str) -> int:
    """How many letters must be changed, added or dropped."""
    if difflib.SequenceMatcher(None, one, other).quick_ratio() < 0.5:
        return len(one) + len(other)
    row = list(range(len(other) + 1))
    for above, letter in enumerate(one, start=1):
        last, row[0] = row[0], above
        for column, beside in enumerate(other, start=1):
            last, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, last + (letter != beside))
    return row[-1]


# The values.
_BOOLS = ("true", "on", "1", "false", "off", "0")
_LARGEST_INT = 2**31 - 1


@RULES.rule("R41", "ignored parameters", Consequence.WASTE, last_seen="26.07")
def parameters_are_read(model: ServedModel) -> RuleResult:
    """Up to 26.06 no parameter is read.

    Versions: up to 26.06; from 26.07 on parameters take effect.
    Consequence: every parameter is silently ignored, including invalid values.
    How it was seen: run with the 26.05 backend (INFERENCE_MODE "banana" loads); 26.07 from its release notes.
    Remedy: serve with 26.07 or later, or remove the parameters.
    """
    if model.release.since(READ_SINCE):
        return
    for item in model.parameters:
        if item.key.value in KNOWN and item.key.value != PARAMETER:
            yield Remark(
                kind="ignored",
                message=f"Triton {model.release.name} ignores it, regardless of its value.",
                observed=item.key.value,
                expected=f"Triton {READ_SINCE} or later",
                subject=item.key.value,
                remedy=f"Serve with Triton {READ_SINCE} or later, or remove the parameter.",
                at=item.key.at,
            )


@RULES.rule("R42", "a value that does not parse", Consequence.FAILS_TO_LOAD, last_seen="26.07")
def values_parse(model: ServedModel) -> RuleResult:
    """From 26.07 on a value must have the type that its key requires: a boolean or a number.

    Versions: 26.07 and later.
    Consequence: booleans are true, on, 1, false, off and 0 in upper or lower case; otherwise the model is not loaded:
    "failed to convert '...' to boolean." Numbers are read up to the first letter ("4abc" is 4); text, and numbers that
    do not fit into 32 bits, stop the load.
    How it was seen: read in the source of 26.05, which contains the code but never calls it; 26.07 from its release
    notes.
    Remedy: use a value that the key accepts.
    """
    if model.release.before(READ_SINCE):
        return
    for item in model.parameters:
        key, text = item.key.value, written_text(item.value)
        number = re.match(r"\s*([+-]?\d+)", text)
        if key in BOOLS:
            if text.lower() not in _BOOLS:
                yield _refused(item, model, text, "boolean", "true or false")
        elif key not in COUNTS:
            continue
        elif number is None or abs(int(number[1])) > _LARGEST_INT:
            yield _refused(item, model, text, "integer", "a number")
        elif number.end() != len(text):
            yield _note(item, "half-read", f"it is read as {number[1]}; the rest is dropped.", "a number")
        elif int(number[1]) <= 0:
            ignored = "it is ignored: only numbers above 0 count."
            yield _note(item, "not-positive", ignored, "a number above 0")


def _refused(item: ParameterConfig, model: ServedModel, text: str, kind: str, expected: str) -> Remark:
    why = f"failed to convert '{text}' to {kind}"
    return Remark(
        kind="value",
        message=f"the model is not loaded: Failed to parse '{item.key.value}' parameter for model \"{model.name}\": "
        f"{why}.",
        observed=f'"{text}"',
        expected=expected,
        subject=item.key.value,
        remedy=f"Give {item.key.value} {expected}.",
        at=item.value_at,
    )


def _note(item: ParameterConfig, kind: str, message: str, expected: str) -> Remark:
    return Remark(
        kind=kind,
        consequence=Consequence.WASTE,
        message=message,
        observed=f'"{item.value.value}"' if item.value is not None else "no value",
        expected=expected,
        subject=item.key.value,
        remedy=f"Write {expected}, or take {item.key.value} away.",
        at=item.value_at,
    )


@RULES.rule("R44", "DISABLE_CUDNN is inverted", Consequence.WASTE)
def cudnn_is_inverted(model: ServedModel) -> RuleResult:
    """DISABLE_CUDNN has the opposite effect of its name.

    Versions: 26.07 and later, unless it has been corrected since: the source of 26.05 stores the value as "cuDNN is
    enabled", and never reads it.
    Consequence: "true" enables cuDNN, "false" disables it.
    How it was seen: read in the source of 26.05.
    Remedy: remove it; cuDNN is enabled without it.
    """
    if model.release.before(READ_SINCE):
        return
    for item in model.parameters:
        if item.key.value == "DISABLE_CUDNN":
            yield _note(
                item,
                "inverted",
                "as the source of 26.05 has it, this "
                f"{'enables' if written_text(item.value).lower() in _BOOLS[:3] else 'disables'} cuDNN: the value is "
                "stored as 'enabled'.",
                "no DISABLE_CUDNN",
            )


@RULES.rule("R45", "thread counts are shared", Consequence.WASTE)
def threads_are_shared(model: ServedModel) -> RuleResult:
    """Thread counts apply to the process: the first model that sets one determines it for all.

    Versions: 26.07 and later, where parameters are read.
    Consequence: a second model's count is ignored; INTER_OP_THREAD_COUNT after parallel work has begun stops the load.
    How it was seen: read in the source of 26.05.
    Remedy: use the same count in every model of the server, or OMP_NUM_THREADS in its environment.
    """
    if model.release.before(READ_SINCE):
        return
    for item in (item for item in model.parameters if item.key.value in COUNTS):
        own = written_text(item.value)
        given = ((name, config.parameter(item.key.value)) for name, config in model.siblings.items())
        others = [(name, written_text(other.value)) for name, other in given if other is not None]
        unequal = sorted(f"{name} has {value}" for name, value in others if value and value != own)
        if unequal:
            message = f"the first model that is loaded decides for all: {', '.join(unequal)}."
            yield _note(item, "unequal", message, "one count for all models")
