"""Family tensors, the types: which the backend has, and whether they are those of the package."""

from __future__ import annotations

from aotidoctor.model.serving import Consequence, Family, Needs, NotJudged, Remark, RuleResult, ServedModel
from aotidoctor.model.serving_config import TensorConfig
from aotidoctor.triton.call_spec import BFLOAT16_SINCE, data_types
from aotidoctor.triton.tensor_names import JoinedTables, for_each_version, obstacles_of, unrecorded_remark

RULES = Family("tensors")

_INVALID, _STRING = "TYPE_INVALID", "TYPE_STRING"
_CRASHES_UNTIL = "26.06"


@RULES.rule("R18", "a type that the backend does not have", Consequence.FAILS_TO_LOAD, last_seen="26.11")
def types_are_known(model: ServedModel) -> RuleResult:
    """The backend has types for bool, uint8, int8 to int64, and float16 to float64; bfloat16 from 26.11 on.

    Versions: all.
    Consequence: with another type the model does not load: "Unsupported datatype TYPE_BF16 for input". With TYPE_STRING
    it loads, but every request fails. A package that takes any other dtype (complex, float8, uint16) cannot be served.
    How it was seen: run with the 26.05 backend.
    Remedy: export a wrapper module that casts.
    """
    config = model.config
    if config is None:
        yield NotJudged(reason="config.pbtxt does not parse")
        return
    for word, tensors in (("input", config.inputs), ("output", config.outputs)):
        yield from (remark for tensor in tensors if (remark := _type(model, word, tensor)) is not None)
    yield from obstacles_of(model, "R18")


def _type(model: ServedModel, word: str, tensor: TensorConfig) -> Remark | None:
    given = tensor.type
    known = data_types(model.release)
    if given in known or given == _INVALID:
        return None  # without a type it is the core that refuses
    kind, consequence = "unsupported", Consequence.FAILS_TO_LOAD
    message = f'the model is not loaded: Unsupported datatype {given} for {word} "{tensor.label}" for model instance '
    message += f'"{model.name}_0_0".'
    if given == _STRING:
        kind, consequence = "string", Consequence.REQUESTS_FAIL
        message = (
            "the model loads; every request fails: Cannot access data pointer of Tensor that doesn't have storage."
        )
        if word == "output":
            message = "the model loads; every request fails: tensors cannot contain strings."
    return Remark(
        kind=kind,
        consequence=consequence,
        message=message,
        observed=given,
        expected="one of " + ", ".join(known),
        subject=tensor.label,
        remedy=f"Serve with Triton {BFLOAT16_SINCE} or later, or cast in the model."
        if given == "TYPE_BF16"
        else "Write the type that aotidoctor triton names shows.",
        at=tensor.type_at,
    )


@RULES.rule(
    "R19", "an input of a different type from the compiled one", Consequence.SILENTLY_WRONG, needs=Needs.CONTRACT
)
@for_each_version
def inputs_have_their_types(joined: JoinedTables) -> RuleResult:
    """The type of an input must be the compiled type. Neither the server nor the package checks this.

    Versions: all.
    Consequence: the model loads and answers with HTTP status 200: the bytes are read as a different type. If the
    compiled type is wider, bytes past the end of the buffer are also read.
    How it was seen: run with the 26.05 backend: FP64 into a float32 model gave garbage.
    Remedy: use the type that ``aotidoctor triton names`` shows.
    """
    known = data_types(joined.model.release)
    silent = [row.label for _, row in joined.inputs.pairs if row.may_be_tensor and row.dtype is None]
    for tensor, row in joined.inputs.pairs:
        given = known.get(tensor.type)
        if row.kind == "tensor" and row.data_type is not None and given is not None and given != row.dtype:
            yield Remark(
                kind="input-type",
                message="the model loads, then answers with HTTP status 200 and wrong numbers: the bytes of "
                f"{given} are read as {row.dtype}.",
                observed=tensor.type,
                expected=f"{row.data_type} ({row.path} is {row.dtype})",
                subject=tensor.label,
                remedy=f"Write data_type: {row.data_type}.",
                at=tensor.type_at,
                facts={"path": row.path, "data_type": row.data_type},
            )
    yield from unrecorded_remark("the dtype", silent)


@RULES.rule(
    "R20", "an output of a different type from the returned one", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT
)
@for_each_version
def outputs_have_their_types(joined: JoinedTables) -> RuleResult:
    """The type of an output must be the type that the package returns.

    Versions: all. Up to 26.05 the server frees the error before it formats it.
    Consequence: the model loads; the first request fails with "has datatype TYPE_A but model configuration expects
    TYPE_B", and up to 26.05 it ends the server process.
    How it was seen: run with the 26.05 backend (SIGSEGV).
    Remedy: use the type that ``aotidoctor triton names`` shows.
    """
    known = data_types(joined.model.release)
    silent = []
    for tensor, row in joined.outputs.pairs:
        if row.kind in ("none", "shifted", "number") or row.dims == ():
            continue  # R15, R23 and R24 are about these
        given = tensor.type
        if row.dtype is None:
            silent.append(row.label)
        elif given in known and known[given] != row.dtype:
            yield wrong_output_type(joined, tensor, row.path, row.data_type, f"{row.path} is {row.dtype}")
    yield from unrecorded_remark("the dtype", silent)


def wrong_output_type(joined: JoinedTables, tensor: TensorConfig, path: str, real: str | None, why: str) -> Remark:
    """Remark about an output of a different type from the config, by release."""
    given = tensor.type
    words = f"has datatype {real or _INVALID} but model configuration expects {given}"
    crash = joined.model.release.before(_CRASHES_UNTIL)
    return Remark(
        kind="output-type",
        consequence=Consequence.FAILS_TO_LOAD if crash else Consequence.REQUESTS_FAIL,
        message="the model loads; the first request ends the server process, although it should only fail with: "
        f"{words}."
        if crash
        else f"the model loads; every request fails: {words}.",
        observed=given,
        expected=f"{real} ({why})" if real else f"no output of this kind: {why}",
        subject=tensor.label,
        remedy=f"Write data_type: {real}." if real else "Leave the output out of the config.",
        at=tensor.type_at,
        facts={"path": path, "data_type": real},
    )
