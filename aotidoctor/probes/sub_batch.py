"""Does a row depend on the other rows of its batch?

What it does
    If the contract states that dim 0 of inputs and outputs is one shared size, calls the package on all rows and on the
    first half of them, and compares the two results for those rows.

Why it matters
    Most models treat the rows of a batch independently. If they do not, a result depends on the other rows of the
    batch: batch norm in training mode, a softmax over the wrong dim, or kernels that read beyond their rows.

Example:
    result: observed max |difference| 0.31 in 4 of 8 rows, expected the same rows

When it is wrong
    Rows may be meant to influence each other (attention over a set, statistics of a batch). The finding is information
    for someone who knows the model, not a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.answers import ComparedOutput, SideBySide, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Dim, ModelContract
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.expr import Sym
from aotidoctor.model.jobs import SubBatch
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-019", "sub_batch"
FIND = RunFinder(CODE, NAME, __doc__)
# One row is its own case in compiled code: sizes of one are never symbols.
FEWEST_ROWS = 2
SUSPICIONS = (("AD-RUN-011", "differs"), ("AD-RUN-002", "differs"), ("AD-RUN-009", "depends"), ("AD-OUT-001", None))


@record
class Batch:
    """The shared size: its symbol, the paths of inputs and outputs whose dim 0 it is."""

    symbol: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if the numbers are suspicious, or with --probes sub_batch."""
    if not succeeded(history.plain) or case.inputs is None:
        return FIND.unchecked("there are no outputs to compare")
    if history.errors("AD-IN"):
        return FIND.unchecked("a static finding already explains wrong numbers")
    remarks = [item for item in history.findings if item.severity is not Severity.INFO]
    suspicious = any((item.code, kind) in SUSPICIONS for item in remarks for kind in (item.kind, None))
    if not suspicious and not case.options.localize and not case.options.asks_for(NAME):
        return FIND.unchecked("the numbers are not suspicious; run this with --probes sub_batch")
    batch = None if case.contract is None else shared_batch(case.contract)
    if batch is None:
        return FIND.unchecked("dim 0 is not a size that inputs and outputs share")
    rows = _rows(case, batch)
    if rows is None:
        return FIND.unchecked(f"no smaller batch ({batch.symbol}) is within what was compiled")
    wanted = SubBatch(rows=rows, inputs=batch.inputs, outputs=batch.outputs)
    return run_request(case, NAME, f"the first {rows} rows alone", sub_batch=wanted, observe=())


def shared_batch(contract: ModelContract) -> Batch | None:
    """The symbol that is dim 0 of inputs and outputs and occurs nowhere else; the most frequent of several."""
    firsts = [dim.expr.name for _, _, dim in _dims(contract, first=True) if isinstance(dim.expr, Sym)]
    for symbol in sorted(set(firsts), key=lambda name: (-firsts.count(name), name)):
        batch = _batch(contract, symbol)
        if batch is not None:
            return batch
    return None


def _dims(contract: ModelContract, *, first: bool) -> Iterator[tuple[str, int, Dim]]:
    """``(path, place, dim)`` of all tensor inputs, only of dim 0 or only of the others."""
    for leaf in contract.tensor_leaves():
        for at, dim in enumerate(leaf.dims or ()):
            if (at == 0) == first:
                yield leaf.path, at, dim


def _batch(contract: ModelContract, symbol: str) -> Batch | None:
    if any(dim.expr is not None and symbol in dim.expr.symbols for _, _, dim in _dims(contract, first=False)):
        return None
    firsts = [(path, dim.expr) for path, _, dim in _dims(contract, first=True) if dim.expr is not None]
    if any(symbol in expr.symbols and not isinstance(expr, Sym) for _, expr in firsts):
        return None
    outputs = []
    for output in contract.outputs:
        sizes = [parse_expr(size) for size in output.shape or ()]
        if any(symbol in size.symbols for size in sizes[1:]):
            return None
        if sizes and sizes[0] == Sym(symbol):
            outputs.append(output.path)
        elif sizes and symbol in sizes[0].symbols:
            return None
    inputs = tuple(path for path, expr in firsts if expr == Sym(symbol))
    return Batch(symbol=symbol, inputs=inputs, outputs=tuple(outputs)) if outputs else None


def _rows(case: Case, batch: Batch) -> int | None:
    """Half of the rows that were given, or the fewest that were compiled; None when that is not fewer."""
    given = case.tensors
    tensors = [given[path] for path in batch.inputs if path in given]
    sizes = {value.shape[0] for value in tensors if value.shape}
    if len(sizes) != 1 or len(tensors) != len(batch.inputs) or case.contract is None:
        return None
    firsts = _dims(case.contract, first=True)
    lows = [dim.min for path, _, dim in firsts if path in batch.inputs and dim.min is not None]
    rows = max(min(sizes) // 2, FEWEST_ROWS, *lows)
    return rows if rows < min(sizes) else None


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: same, differs or undecided; none of them is a verdict."""
    if not succeeded(outcome):
        # This call is not the user's: indices may refer to rows that were cut off (the edges of a graph).
        ended = read_ending(CODE, case, outcome)
        why = f"the first half of the rows alone: {ended.observed}"
        return [FIND.info(outcome)("undecided", None, observed=why, expected="the same rows")]
    result = parse_answer(SideBySide, outcome.result).sub_batch
    if result is None:
        return []
    if not result.repeatable:
        observed, kind = "equal calls already differ", "undecided"
    elif result.agrees:
        observed, kind = f"the same {result.rows} of {result.of} rows", "same"
    else:
        worst = max(result.outputs, key=_difference, default=ComparedOutput())
        path = worst.path or "result"
        return [
            FIND.info(outcome)(
                "differs",
                path,
                observed=f"max |difference| {_difference(worst):.3g} in the first {result.rows} of {result.of} rows",
                expected="the same rows: they do not influence each other",
                facts={"max_abs_diff": _difference(worst), "rows": result.rows, "of": result.of, "output": path},
            )
        ]
    return [FIND.info(outcome)(kind, None, observed=observed, expected="the same rows")]


def _difference(item: ComparedOutput) -> float:
    if item.max_abs_diff is not None:
        return item.max_abs_diff
    return 0.0 if item.agrees else float("inf")


PROBE = FIND.probe(plan, read, "when numbers are odd and dim 0 is one shared size, or with --probes sub_batch")
