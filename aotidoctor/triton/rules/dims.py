"""Family tensors, the dims of inputs, which the server does not compare with the compiled ones."""

from __future__ import annotations

from aotidoctor.model.serving import Consequence, Family, Needs, Remark, RuleResult
from aotidoctor.model.serving_config import TensorConfig
from aotidoctor.triton.call_spec import compare_dims, dims_text, fixed_symbols
from aotidoctor.triton.tensor_names import JoinedTables, Pair, for_each_version, unrecorded_remark

RULES = Family("tensors")

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
