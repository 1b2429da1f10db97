"""Family rest: warm-up requests, reshapes, and ensembles around the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.serving_config import ConfigMessage, Position, TensorConfig, written_text
from aotidoctor.triton.serving import Consequence, Family, Remark, RuleResult, ServedModel
from aotidoctor.triton.text_format import enum_of, numbers_of, text_of

RULES = Family("rest")


@RULES.rule("R50", "a warm-up request that does not fit", Consequence.FAILS_TO_LOAD, last_seen="26.06")
def warmup_fits(model: ServedModel) -> RuleResult:
    """A warm-up request must name every input, with its type, and give every dimension a size.

    Versions: all.
    Consequence: otherwise the model does not load. A valid warm-up is useful: failures of the first request appear when
    the model loads instead of in production. On 26.05 and older an output of a different type from the config then ends
    the server at its start.
    How it was seen: read in the source of the core; the crash was run with the 26.05 backend.
    Remedy: list the inputs of the config, with their types, and whole numbers for all their dims.
    """
    config = model.config
    if config is None:
        return
    inputs = {tensor.label: tensor for tensor in config.inputs}
    for warmup in config.warmups:
        given = {_key(entry): entry for entry in warmup.messages("inputs")}
        missing, unknown = sorted(inputs.keys() - given.keys()), sorted(given.keys() - inputs.keys())
        if missing or unknown:
            differs = [f"without {name}" for name in missing]
            differs += [f"with {name}, which is not an input" for name in unknown]
            at = given[unknown[0]].at if unknown else warmup.at
            yield _unfit("names", ", ".join(differs), "every input of the config, and no other", at)
        for name in sorted(given.keys() & inputs.keys()):
            yield from _warmup_input(name, given[name], inputs[name])


def _warmup_input(name: str, entry: ConfigMessage, tensor: TensorConfig) -> RuleResult:
    value = entry.message("value")
    if value is None:
        yield _unfit("names", f"{name} without a value", "type, dims and data", entry.at)
        return
    kind = enum_of(value, "data_type", "DataType")
    if kind is not None and tensor.data_type is not None and kind.value != tensor.type:
        yield _unfit("type", f"{name} as {kind.value}", tensor.type, kind.at)
    dims = numbers_of(value, "dims")
    variable = next((dim for dim in dims if dim.value < 0), None)
    fits = len(dims) == len(tensor.dims) and all(
        declared.value in (-1, dim.value) for declared, dim in zip(tensor.dims, dims, strict=True)
    )
    if variable is not None:
        yield _unfit("dims", f"{name} with a dimension of {variable.value}", "a size for every dimension", variable.at)
    elif not fits:
        observed = f"{name} as [{', '.join(str(dim.value) for dim in dims)}]"
        yield _unfit("dims", observed, f"[{', '.join(str(dim.value) for dim in tensor.dims)}]", value.at)


def _unfit(kind: str, observed: str, expected: str, at: Position) -> Remark:
    return Remark(
        kind=f"warmup-{kind}",
        message="the model is not loaded: its warm-up request cannot be made.",
        observed=observed,
        expected=expected,
        subject="model_warmup",
        remedy=f"Give the warm-up {expected}.",
        at=at,
    )


def _key(entry: ConfigMessage) -> str:
    return written_text(text_of(entry, "key"))


@RULES.rule("R52", "a reshape", Consequence.FAILS_TO_LOAD, last_seen="26.06")
def reshape_is_what_counts(model: ServedModel) -> RuleResult:
    """If a tensor has a reshape, the compiled code receives the reshape's shape, not dims.

    Versions: all.
    Consequence: none by itself; the dims of the config are for the client, the reshape's for the package. If the two
    have different numbers of elements, the core refuses the model.
    How it was seen: read in the source of the core.
    Remedy: use a reshape with as many elements as dims.
    """
    config = model.config
    tensors = (*config.inputs, *config.outputs) if config is not None else ()
    batched = config is not None and config.batch_size > 0
    for tensor in (tensor for tensor in tensors if tensor.reshape is not None):
        dims, shape = [item.value for item in tensor.dims], [item.value for item in tensor.shape]
        written = tensor.tree.first("reshape")
        fits = _parts(dims) == _parts(shape) and all(size >= 1 or size == -1 for size in shape)
        remark = Remark(
            kind="reshape-size",
            message="the model is not loaded: dims and reshape have different sizes, or nothing is left of the shape.",
            observed=f"dims {dims}, reshape {shape}",
            expected="as many elements between variable dimensions in both",
            subject=tensor.label,
            remedy="Give the reshape as many elements as dims.",
            at=written.at if written is not None else tensor.at,
        )
        if fits and (shape or batched):
            remark = replace(
                remark,
                kind="reshape",
                consequence=Consequence.NOTE,
                message=f"clients send {dims}, the compiled code gets {shape}: the server reshapes before the backend.",
                observed=f"reshape to {shape}",
                expected="",
                remedy="No change is needed.",
            )
        yield remark


def _parts(sizes: Sequence[int]) -> list[int]:
    """Number of elements before, between and after the variable dimensions."""
    parts = [1]
    for size in sizes:
        if size == -1:
            parts.append(1)
        else:
            parts[-1] *= size
    return parts


@RULES.rule("R53", "an ensemble around the model", Consequence.FAILS_TO_LOAD, last_seen="26.06")
def ensembles_use_its_names(model: ServedModel) -> RuleResult:
    """An ensemble maps the names of the config unchanged, including brackets.

    Versions: all.
    Consequence: names such as ARGS[0] are legal in the core and need no alias. If a step maps a name that the config
    does not have, or omits an input, the ensemble does not load.
    How it was seen: names with brackets run on a real server core.
    Remedy: use the names of this model's config as keys of input_map and output_map.
    """
    return [
        _step(model, ensemble, step)
        for ensemble, config in sorted(model.siblings.items())
        if (scheduling := config.tree.message("ensemble_scheduling")) is not None
        for step in scheduling.messages("step")
        if written_text(text_of(step, "model_name")) == model.name
    ]


def _step(model: ServedModel, ensemble: str, step: ConfigMessage) -> Remark:
    config = model.config
    inputs = {tensor.label for tensor in config.inputs} if config is not None else set()
    outputs = {tensor.label for tensor in config.outputs} if config is not None else set()
    mapped = {_key(entry) for entry in step.messages("input_map")}
    taken = {_key(entry) for entry in step.messages("output_map")}
    missing, unknown = sorted(inputs - mapped), sorted((mapped - inputs) | (taken - outputs))
    # The place is in the config of the ensemble, not of this model.
    file = f"{model.path}/../{ensemble}/config.pbtxt"
    if not missing and not unknown:
        return Remark(
            kind="mapped",
            consequence=Consequence.NOTE,
            message=f"the ensemble {ensemble} maps its names as they are, which the server allows.",
            subject=ensemble,
            remedy="No change is needed.",
            at=step.at,
            file=file,
        )
    observed = [f"without {name}" for name in missing] + [f"with {name}" for name in unknown]
    return Remark(
        kind="unmapped",
        message=f"the ensemble {ensemble} is not loaded: its step does not use the names of this model.",
        observed=", ".join(observed),
        expected="inputs " + ", ".join(sorted(inputs)) + "; outputs " + ", ".join(sorted(outputs)),
        subject=ensemble,
        remedy="Use the names of this model's config as keys.",
        at=step.at,
        file=file,
    )
