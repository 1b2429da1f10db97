"""Family tensors, the outputs: their dims, and which of them no response can hold."""

from __future__ import annotations

from aotidoctor.model.serving import Consequence, Family, Needs, NotJudged, Remark, RuleResult
from aotidoctor.triton.call_spec import compare_dims
from aotidoctor.triton.rules.dtypes import wrong_output_type
from aotidoctor.triton.tensor_names import JoinedTables, for_each_version, obstacle_remarks, unrecorded_remark

RULES = Family("tensors")


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
