"""Family scheduling: optional inputs, batch inputs, dynamic batching and sequences."""

from __future__ import annotations

import re

from aotidoctor.model.serving_config import Given, Position
from aotidoctor.triton.call_spec import SPLITS_SINCE
from aotidoctor.triton.serving import Consequence, Family, Remark, RuleResult, ServedModel

RULES = Family("scheduling")

_NUMBERED = re.compile(r"(?:INPUT|OUTPUT)__\d+|(?:ARGS|KWARGS|RESULT).*|.+__\d+", re.DOTALL)


@RULES.rule("R29", "an input is optional", Consequence.FAILS_TO_LOAD)
def inputs_are_required(model: ServedModel) -> RuleResult:
    """No input may be optional.

    Versions: 26.03 to 26.05 seen; whether later releases catch the exception is unknown.
    Consequence: the backend throws while the model loads, and nothing catches the exception: the server process aborts,
    with all its models.
    How it was seen: run with the 26.05 backend (SIGABRT).
    Remedy: remove optional. The compiled code needs every tensor in each request anyway.
    """
    config = model.config
    for tensor in config.inputs if config is not None else ():
        if tensor.optional is not None and tensor.optional.value:
            yield Remark(
                kind="optional",
                message="the whole server process aborts while this model loads.",
                observed="optional: true",
                expected="no optional input",
                subject=tensor.label,
                remedy="Remove optional; the compiled code needs every input with each request.",
                at=tensor.optional.at,
            )


@RULES.rule("R30", "batch inputs", Consequence.FAILS_TO_LOAD)
def no_batch_inputs(model: ServedModel) -> RuleResult:
    """batch_input, batch_output and ragged batches are not supported for an AOTInductor model.

    Versions: up to 26.05 seen.
    Consequence: a batch_input counts as an input in one check but not in the other, so the model never loads:
    "configuration expects N inputs, but model configuration has M inputs." The effect of batch_output and
    allow_ragged_batch was not tested.
    How it was seen: batch_input run with the 26.05 backend.
    Remedy: remove them; pass such tensors as inputs of the model.
    """
    config = model.config
    if config is None:
        return ()
    count = len(config.inputs)
    found = [
        Remark(
            kind="batch-input",
            message=f"the model is not loaded: configuration expects {count + len(config.batch_inputs)} inputs, but "
            f"model configuration has {count} inputs.",
            observed="batch_input",
            expected="inputs only",
            remedy="Remove batch_input and pass the tensor as an input.",
            at=item.at,
        )
        for item in config.batch_inputs[:1]
    ]
    ragged = [
        (item.ragged.at, "allow_ragged_batch", item.label)
        for item in config.inputs
        if item.ragged and item.ragged.value
    ]
    outputs = [(item.at, "batch_output", None) for item in config.batch_outputs[:1]]
    untried = [
        Remark(
            kind="untried",
            consequence=Consequence.WASTE,
            message=f"{what} is untested with torch_aoti; the backend has no code for it.",
            observed=what,
            expected="tensors whose first dimension is the batch",
            subject=subject,
            remedy=f"Take {what} away.",
            at=at,
        )
        for at, what, subject in (*ragged, *outputs)
    ]
    return [*found, *untried]


@RULES.rule(
    "R34", "requests are merged by a release that cannot split them", Consequence.SILENTLY_WRONG, last_seen="26.06"
)
def requests_are_not_merged(model: ServedModel) -> RuleResult:
    """Before 26.06 a scheduler that merges requests leaks rows to other clients.

    Versions: up to 26.05; 26.06 and later split the results along the first dimension.
    Consequence: with HTTP status 200, the first response contains the rows of all merged requests and the others read
    past the end of the buffer: other clients' data and bytes of the server's heap.
    How it was seen: run with the 26.05 backend.
    Remedy: remove dynamic_batching, or use 26.06 or later.
    """
    config = model.config
    if config is None or config.scheduling is None or config.scheduling.name != "dynamic_batching":
        return
    if config.batch_size == 0:
        yield Remark(
            kind="no-batching",
            consequence=Consequence.WASTE,
            message="nothing is merged: max_batch_size is 0, so requests have no batch dimension.",
            observed="dynamic_batching with max_batch_size 0",
            expected="max_batch_size above 0",
            remedy="Set max_batch_size, or remove dynamic_batching.",
            at=config.scheduling.at,
        )
        return
    if model.release.since(SPLITS_SINCE):
        return
    yield Remark(
        kind="merged",
        message="the model loads, then answers with rows of different requests: the first response "
        "contains the rows of all merged requests, the others read past the end of the buffer.",
        observed=f"dynamic_batching on Triton {model.release.name}",
        expected="no scheduler that merges requests before 26.06",
        remedy="Remove dynamic_batching, or serve with Triton 26.06 or later.",
        at=config.scheduling.at,
    )


@RULES.rule("R35", "sequence batching", Consequence.FAILS_TO_LOAD, last_seen="26.06")
def sequences_are_supported(model: ServedModel) -> RuleResult:
    """sequence_batching needs 26.06; its tensors count as inputs and outputs of the model.

    Versions: up to 26.05 the model does not load; 26.06 and later support controls and state.
    Consequence: up to 26.05 "Boolean sequence control validation is not supported for model instance". Later: a control
    or state of type string does not load, and names must end in a number (START__2) or be the names of the call.
    How it was seen: run with the 26.05 backend; 26.06 read in its change and its tests.
    Remedy: use 26.06 or later, and name controls and states <name>__<index>, INPUT__<index> or as the call does.
    """
    config = model.config
    if config is None or config.scheduling is None or config.scheduling.name != "sequence_batching":
        return
    if model.release.before("26.06"):
        yield Remark(
            kind="unsupported",
            message="the model is not loaded: Boolean sequence control validation is not supported for model "
            f'instance "{model.name}_0_0".',
            observed=f"sequence_batching on Triton {model.release.name}",
            expected="Triton 26.06 or later",
            remedy="Serve with Triton 26.06 or later, or remove sequence_batching.",
            at=config.scheduling.at,
        )
        return
    tensors = [(item.name, item.data_type, item.at) for item in config.controls]
    tensors += [
        pair
        for state in config.states
        for pair in [(state.input_name, state.data_type, state.at), (state.output_name, state.data_type, state.at)]
    ]
    for name, kind, at in tensors:
        yield from _sequence_tensor(name, kind, at)


def _sequence_tensor(name: Given[str] | None, data_type: Given[str] | None, at: Position) -> RuleResult:
    label = name.value if name is not None else "(no name)"
    if data_type is not None and data_type.value == "TYPE_STRING":
        yield Remark(
            kind="string",
            message="the model is not loaded: a control or state cannot be of type string.",
            observed="TYPE_STRING",
            expected="a type of numbers",
            subject=label,
            remedy="Use a number type, TYPE_UINT64 for a correlation ID that is a number.",
            at=data_type.at,
        )
    if not _NUMBERED.fullmatch(label):
        yield Remark(
            kind="name",
            message=f"the model is not loaded: the backend cannot determine which argument {label} is.",
            observed=label,
            expected="a name that ends in __ and the number of the argument",
            subject=label,
            remedy=f"Call it {label}__<index of the argument>.",
            at=name.at if name is not None else at,
        )
