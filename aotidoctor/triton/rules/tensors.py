"""Family tensors: dims and types of inputs, which the server does not compare with the compiled ones, and outputs."""

from __future__ import annotations

from aotidoctor.model.serving_config import TensorConfig
from aotidoctor.triton.call_spec import BFLOAT16_SINCE, compare_dims, data_types, dims_text, fixed_symbols
from aotidoctor.triton.serving import Consequence, Family, Needs, NotJudged, Remark, RuleResult, ServedModel
from aotidoctor.triton.tensor_names import (
    JoinedTables,
    Pair,
    for_each_version,
    obstacle_remarks,
    obstacles_of,
    unrecorded_remark,
)

RULES = Family("tensors")

# The dims of inputs.
_MISREAD = (
    "the model loads, then answers with HTTP status 200 and wrong numbers: the code uses the compiled sizes, cuts, "
    "repeats or reads past the end, and the output has the compiled shape."
)
_MESSAGES = {
    "wider": (
        Consequence.WASTE,
        (
            "the model loads; a request of a size that was not compiled is accepted and answered wrongly, with HTTP "
            "status 200."
        ),
    ),
    "below-two": (
        Consequence.NOTE,
        (
            "the model loads and works; export treats 0 and 1 as special, so AOTI_RUNTIME_CHECK_INPUTS=1 accepts "
            "2 and more."
        ),
    ),
    "scalar": (
        Consequence.NOTE,
        "the model loads and works: the code reads the one element. AOTI_RUNTIME_CHECK_INPUTS=1 refuses the extra dim.",
    ),
    "multiple": (
        Consequence.SILENTLY_WRONG,
        "the model loads, then answers with HTTP status 200: the remainder that does not fill a group is dropped.",
    ),
    "batch-written": (
        Consequence.SILENTLY_WRONG,
        f"{_MISREAD} With max_batch_size above 0 the batch dim is not written: requests have one dim too many.",
    ),
}


@RULES.rule("R21", "dims of an input that were not compiled", Consequence.SILENTLY_WRONG, needs=Needs.CONTRACT)
@for_each_version
def input_dims_are_compiled(joined: JoinedTables) -> RuleResult:
    """The dims of an input must be the compiled ones; -1 means a dynamic dim.

    Versions: all.
    Consequence: the model loads and answers with HTTP status 200: the code uses the compiled sizes and cuts, repeats,
    or reads past the end of the buffer. A -1 for a static size accepts requests of any size.
    How it was seen: run with the 26.05 backend: dims [3,4] on a [2,4] model answered [2,4].
    Remedy: use the dims that ``aotidoctor triton names`` shows, without the first one if max_batch_size is above 0.
    """
    silent = []
    for tensor, row in _compared(joined):
        if row.dims is None:
            silent.append(row.label)
            continue
        mismatches = compare_dims(tensor, row.dims, batched=joined.config.batch_size > 0)
        for item in (item for item in mismatches if item.kind != "batch-missing"):
            consequence, message = _MESSAGES.get(item.kind, (Consequence.SILENTLY_WRONG, _MISREAD))
            expected = row.dims[1:] if item.kind == "batch-written" else row.dims
            written = ", ".join("-1" if dim.static is None else str(dim.static) for dim in expected)
            harmless = consequence is Consequence.NOTE
            yield Remark(
                kind=item.kind,
                consequence=consequence,
                message=message,
                observed=item.observed if item.dim is None else f"{item.observed} in dim {item.dim}",
                expected=f"{item.expected} ({row.path} is {dims_text(row.dims)})",
                subject=tensor.label,
                remedy="No change is needed." if harmless else f"Write dims: [ {written} ].",
                at=item.at,
                facts={"path": row.path, "dim": item.dim},
            )
    yield from _disagreeing(joined)
    yield from unrecorded_remark("the dims", silent)


def _compared(joined: JoinedTables) -> list[Pair]:
    return [(tensor, row) for tensor, row in joined.inputs.pairs if row.may_be_tensor and tensor.shape]


def _disagreeing(joined: JoinedTables) -> RuleResult:
    """Dims that are one symbol in the package and two sizes in the config."""
    seen: dict[str, tuple[int, TensorConfig]] = {}
    for tensor, row in _compared(joined):
        for symbol, value, place in fixed_symbols(tensor, row.dims or (), batched=joined.config.batch_size > 0):
            first, where = seen.setdefault(symbol, (value, tensor))
            if first != value:
                observed = f"{symbol} = {value} here, {first} in {where.label}"
                yield Remark(
                    kind="disagree",
                    message=_MISREAD,
                    observed=observed,
                    expected=f"one size for {symbol}",
                    subject=tensor.label,
                    remedy="Write the same size in both, or -1.",
                    at=place.at,
                )


@RULES.rule("R33", "no batching, and no batch dim", Consequence.SILENTLY_WRONG, needs=Needs.CONTRACT)
@for_each_version
def batch_dim_is_written(joined: JoinedTables) -> RuleResult:
    """Without batching, dims must include the first dim.

    Versions: all.
    Consequence: if max_batch_size is 0 or missing and dims omit the first dim, each request has one dim fewer than the
    code takes, and the code reads the wrong sizes, with HTTP status 200.
    How it was seen: as every other rank, run with the 26.05 backend.
    Remedy: write the first dim, or set max_batch_size.
    """
    for tensor, row in _compared(joined):
        if row.dims is not None:
            for item in compare_dims(tensor, row.dims, batched=joined.config.batch_size > 0):
                if item.kind == "batch-missing":
                    yield Remark(
                        kind="batch-missing",
                        message=f"{_MISREAD} max_batch_size is 0, so the server adds no dim.",
                        observed=f"{item.observed} with max_batch_size 0",
                        expected=item.expected,
                        subject=tensor.label,
                        remedy="Also write the first dim, or set max_batch_size if the package can be batched.",
                        at=item.at,
                        facts={"path": row.path},
                    )


# The types: which the backend has, and whether they are those of the package.
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


# The outputs: their dims, and which of them no response can hold.
@RULES.rule("R22", "dims of an output that are not those that come back", Consequence.WASTE, needs=Needs.CONTRACT)
@for_each_version
def output_dims_are_right(joined: JoinedTables) -> RuleResult:
    """The dims of outputs are for clients: the server does not compare them with the result.

    Versions: all.
    Consequence: the response has the shape that the model returns. Clients that allocate by the config's dims, and
    ensembles, which compare the dims of their steps, are misled.
    How it was seen: read in the source.
    Remedy: use the dims that ``aotidoctor triton names`` shows.
    """
    silent = []
    for tensor, row in joined.outputs.pairs:
        if row.may_be_tensor and row.dims is None:
            silent.append(row.label)
        if not row.may_be_tensor or not row.dims:
            continue
        for item in compare_dims(tensor, row.dims, batched=joined.config.batch_size > 0):
            wider = item.kind in ("wider", "below-two")
            where = "" if item.dim is None else f" in dim {item.dim}"
            effect = "given less information than the package records." if wider else "misled."
            yield Remark(
                kind=f"output-{item.kind}",
                consequence=Consequence.NOTE if wider else Consequence.WASTE,
                message=f"the model loads and answers with the true shape{where}; clients and ensembles that go by "
                f"the config are {effect}",
                observed=item.observed,
                expected=item.expected,
                subject=tensor.label,
                remedy=f"Write {item.expected}{where}, -1 for what is dynamic.",
                at=item.at,
                facts={"path": row.path},
            )
    yield from unrecorded_remark("the dims", silent)


@RULES.rule("R23", "an output without dims", Consequence.REQUESTS_FAIL, needs=Needs.CONTRACT)
@for_each_version
def outputs_have_dims(joined: JoinedTables) -> RuleResult:
    """An output without dims cannot be sent: a sum, a loss, a number of the program.

    Versions: all seen.
    Consequence: the model loads; every request fails: "is a scalar which is not supported", even if the other outputs
    are fine.
    How it was seen: run with the 26.05 backend.
    Remedy: leave it out of the config (any subset of the outputs may be listed), or unsqueeze it in the model.
    """
    yield from obstacle_remarks(joined, "R23")
    for tensor, row in (pair for pair in joined.outputs.pairs if pair[1].dims == ()):
        if row.data_type is not None and tensor.type != row.data_type:
            # The type is looked at first.
            why = f"{row.path} is {row.dtype}, without dims"
            yield wrong_output_type(joined, tensor, row.path, row.data_type, why)
            continue
        yield Remark(
            kind="scalar",
            message=f'loads; every request fails: output tensor "{tensor.label}" is a scalar which is not supported.',
            observed=f"{row.path} without dims",
            expected="a tensor of one dim or more",
            subject=tensor.label,
            remedy="Leave the output out of the config, or unsqueeze it in the model.",
            at=tensor.at,
            facts={"path": row.path},
        )
    silent = [row.label for _, row in joined.outputs.pairs if row.may_be_tensor and row.dims is None]
    if silent:
        yield NotJudged(reason=f"the package does not record whether {', '.join(silent)} has dims")


@RULES.rule("R24", "an output that is None", Consequence.FAILS_TO_LOAD, needs=Needs.CONTRACT)
@for_each_version
def outputs_are_tensors(joined: JoinedTables) -> RuleResult:
    """An output that is None has a number, but nothing is returned for it.

    Versions: all seen.
    Consequence: if the config lists it, it acts like an output of a wrong type: the first request fails, and up to
    26.05 it ends the server process. If it is left out it does no harm; the numbers after it do not change.
    How it was seen: run with the 26.05 backend.
    Remedy: leave it out of the config.
    """
    for tensor, row in joined.outputs.pairs:
        if row.kind == "none":
            yield wrong_output_type(joined, tensor, row.path, None, f"{row.path} is None")
