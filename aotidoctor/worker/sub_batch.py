"""Call the model on all rows, on the first of them, and on all again; compare the rows that both calls have.

Part of the result: ``sub_batch``, a ``RowsCompared`` with the outputs whose dim 0 is the batch.
"""

from __future__ import annotations

from typing import Any

from aotidoctor.model.answers.called import RowsCompared
from aotidoctor.model.jobs import SubBatch
from aotidoctor.worker.call import Call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compare import compare, compared_leaf
from aotidoctor.worker.describe import digest
from aotidoctor.worker.leaves import result_tensors
from aotidoctor.worker.load import LoadedModel


def compare_rows(model: LoadedModel, call: Call, wanted: SubBatch, channel: Channel) -> None:
    """Do it. ``wanted`` names the leaves to cut."""
    rows, inputs, outputs = wanted.rows, frozenset(wanted.inputs), frozenset(wanted.outputs)
    # Cut before the first call, which may write to its inputs.
    part = _cut(call, inputs, rows)
    again = call.copy() or call
    of = max(leaf.shape[0] for path, leaf in call.tensors() if path in inputs)
    channel.enter("run1")
    whole = _keep(model(*call.args, **call.kwargs), outputs)
    channel.enter("run2")
    some = _keep(model(*part.args, **part.kwargs), outputs)
    channel.enter("run3")
    second = _keep(model(*again.args, **again.kwargs), outputs)
    channel.enter("scan")
    repeatable = [digest(leaf) for leaf in whole.values()] == [digest(leaf) for leaf in second.values()]
    compared = compare(list(some.values()), [leaf[:rows] for leaf in whole.values()])
    leaves = zip(whole, compared["outputs"], strict=True)
    channel.put(
        sub_batch=RowsCompared(
            rows=rows,
            of=of,
            repeatable=repeatable,
            agrees=compared["agrees"],
            outputs=tuple(compared_leaf({**leaf, "path": path}) for path, leaf in leaves),
        )
    )


def _cut(call: Call, inputs: frozenset[str], rows: int) -> Call:
    def head(path: str, leaf: Any) -> Any:
        # A clone: the package may ask for alignment, and two calls must not share memory.
        return leaf[:rows].clone() if path in inputs else leaf

    return (call.copy() or call).rebuilt(head)


def _keep(result: Any, outputs: frozenset[str]) -> dict[str, Any]:
    """Copies of the outputs in question: another call may reuse their memory."""
    return {path: leaf.detach().clone() for path, leaf in result_tensors(result) if path in outputs}
