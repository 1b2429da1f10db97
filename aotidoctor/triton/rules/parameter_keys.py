"""Family parameters, the keys: which are read, which belong to another path, and which are misspelt."""

from __future__ import annotations

import difflib

from aotidoctor.model.serving import Consequence, Family, Remark, RuleResult, ServedModel
from aotidoctor.model.serving_config import PARAMETER

RULES = Family("parameters")

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
