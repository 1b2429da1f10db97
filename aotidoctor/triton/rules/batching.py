"""Family tensors, the batch: max_batch_size against the first dim of each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.contract import Dim
from aotidoctor.model.expr import Sym
from aotidoctor.model.serving_config import NameRow, TensorConfig
from aotidoctor.triton.call_spec import SPLITS_SINCE, dim_text
from aotidoctor.triton.serving import Consequence, Family, Needs, Remark, RuleResult
from aotidoctor.triton.tensor_names import JoinedTables, for_each_version, unrecorded_remark

RULES = Family("tensors")


@RULES.rule(
    "R31", "batching of a package with a fixed number of rows", Consequence.SILENTLY_WRONG, needs=Needs.CONTRACT
)
@for_each_version
def batch_dim_is_dynamic(joined: JoinedTables) -> RuleResult:
    """With max_batch_size above 0, the first dim of every input must be dynamic.

    Versions: all.
    Consequence: the model loads; a request with a different number of rows is answered with the compiled number of
    rows, with HTTP status 200.
    How it was seen: run with the 26.05 backend: batches of 1, 3 and 5 on a model of 2 rows all answered 2 rows.
    Remedy: export with a dynamic first dim, or set max_batch_size to 0 and write all dims.
    """
    size = joined.config.batch_size
    for tensor, row in joined.inputs.pairs:
        if size > 0 and row.dims and row.dims[0].static is not None and (row.dims[0].static, size) != (1, 1):
            yield Remark(
                kind="static-batch",
                message=f"the model loads, then answers every request with {row.dims[0].static} rows, regardless of "
                "its size, with HTTP status 200.",
                observed=f"max_batch_size {size}",
                expected=f"a dynamic first dim; {row.path} has {row.dims[0].static} rows, always",
                subject=tensor.label,
                remedy="Set max_batch_size: 0 and write all dims, or export with a dynamic first dim.",
                at=joined.config.batch_at,
                facts={"path": row.path, "rows": row.dims[0].static},
            )


@RULES.rule(
    "R32",
    "batches beyond the compiled range, or tensors without the batch",
    Consequence.SILENTLY_WRONG,
    needs=Needs.CONTRACT,
)
@for_each_version
def batch_is_in_range(joined: JoinedTables) -> RuleResult:
    """Every batch from 1 to max_batch_size must be within the compiled range, and all tensors must share the batch dim.

    Versions: all; before 26.06 results are not split, so an output without the batch dim is returned whole.
    Consequence: beyond the range the code may index wrongly, and AOTI_RUNTIME_CHECK_INPUTS=1 refuses it. A batch of 1
    below a minimum of 2 runs correctly: export treats 0 and 1 as special. From 26.06 on an output without the batch dim
    is cut or read past its end.
    How it was seen: read in the source.
    Remedy: use a smaller max_batch_size, a different range at export, or max_batch_size: 0.
    """
    if joined.config.batch_size <= 0:
        return
    firsts = [(tensor, row, row.dims[0]) for tensor, row in joined.inputs.pairs if row.dims]
    dynamic = [(tensor, row, dim) for tensor, row, dim in firsts if dim.static is None]
    ranges: set[tuple[int | None, int | None]] = set()
    for tensor, row, dim in dynamic:
        if (dim.min, dim.max) not in ranges:
            ranges.add((dim.min, dim.max))
            yield from _limits(joined, tensor, row, dim)
    for tensor, row, dim in dynamic:
        if _is_made_of(dim):
            message = f"the model loads; the first dim is {dim.expr}, so that a batch of a different size loses rows, "
            yield _out_of_range(
                *(joined, tensor, row, dim),
                kind="multiple",
                message=f"{message}with HTTP status 200.",
                remedy="Set max_batch_size: 0 and write all dims.",
            )
    yield from _strangers(joined, dynamic)
    yield from _outputs(joined, [dim for _, _, dim in dynamic])


def _limits(joined: JoinedTables, tensor: TensorConfig, row: NameRow, dim: Dim) -> RuleResult:
    size = joined.config.batch_size
    if dim.max is not None and size > dim.max:
        message = (
            f"the model loads; batches of {dim.max + 1} to {size} rows are accepted and computed by code compiled "
        )
        message += f"for at most {dim.max}: wrong numbers are possible, with HTTP status 200."
        remedy = f"Set max_batch_size: {dim.max}."
        yield _out_of_range(joined, tensor, row, dim, kind="above-range", message=message, remedy=remedy)
    if dim.min is not None and dim.min > 2:
        message = f"the model loads; batches of 1 to {dim.min - 1} rows are accepted and computed by code compiled for "
        message += f"at least {dim.min}: wrong numbers are possible, with HTTP status 200."
        remedy = "Export with a smaller least size, or set max_batch_size: 0 and write all dims."
        yield _out_of_range(joined, tensor, row, dim, kind="below-range", message=message, remedy=remedy)


def _out_of_range(
    joined: JoinedTables, tensor: TensorConfig, row: NameRow, dim: Dim, *, kind: str, message: str, remedy: str
) -> Remark:
    return Remark(
        kind=kind,
        message=message,
        observed=f"max_batch_size {joined.config.batch_size}",
        expected=f"batches in {dim_text(dim)} ({row.path})",
        subject=tensor.label,
        remedy=remedy,
        at=joined.config.batch_at,
        facts={"path": row.path, "low": dim.min, "high": dim.max},
    )


def _is_made_of(dim: Dim) -> bool:
    """Whether the dim is computed from a symbol (``8*s40``), so that not every size is one."""
    return dim.expr is not None and bool(dim.expr.symbols) and not isinstance(dim.expr, Sym)


def _strangers(joined: JoinedTables, dynamic: Sequence[tuple[TensorConfig, NameRow, Dim]]) -> RuleResult:
    """Inputs whose first dims are independent sizes: the server gives them all the same number of rows."""
    named = [(tensor, row, dim) for tensor, row, dim in dynamic if dim.expr is not None and dim.expr.symbols]
    for tensor, row, dim in named[1:]:
        if dim.expr != named[0][2].expr and not _is_made_of(dim) and not _is_made_of(named[0][2]):
            message = f"the model loads; the first dims of {named[0][1].path} and {row.path} are independent sizes in "
            message += "the package, and the server gives both the same number of rows: batches may be merged that do "
            message += "not belong together."
            remedy = "Set max_batch_size: 0 and write all dims, unless both first dims are the batch."
            remark = _out_of_range(joined, tensor, row, dim, kind="another-size", message=message, remedy=remedy)
            yield replace(remark, consequence=Consequence.WASTE)


def _outputs(joined: JoinedTables, batch: Sequence[Dim]) -> RuleResult:
    """Outputs whose first dim is not the batch."""
    known = [dim.expr for dim in batch if dim.expr is not None and dim.expr.symbols]
    silent = []
    for tensor, row in joined.outputs.pairs:
        if not row.may_be_tensor or row.dims == ():
            continue
        first = row.dims[0] if row.dims else None
        if first is None or (first.static is None and (first.expr is None or not first.expr.symbols)):
            silent.append(row.label)
        elif known and first.expr not in known:
            splits = joined.model.release.since(SPLITS_SINCE)
            yield Remark(
                kind="output-without-batch",
                consequence=Consequence.SILENTLY_WRONG if splits else Consequence.WASTE,
                message="the model loads; the server treats the first dim as the batch and cuts the output by it, "
                "or reads past its end: wrong numbers with HTTP status 200."
                if splits
                else "the model loads; the output is returned whole, and clients treat its first dim as the batch.",
                observed=f"first dim {dim_text(first)} of {row.path}",
                expected="the batch",
                subject=tensor.label,
                remedy="Leave the output out of the config, or set max_batch_size: 0 and write all dims.",
                at=tensor.at,
                facts={"path": row.path},
            )
    yield from unrecorded_remark("the first dim", silent)
