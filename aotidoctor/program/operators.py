"""Rules G01, G03, G04, A03 and A07: values without metadata, and the operators that nodes call."""

from __future__ import annotations

from functools import partial

from aotidoctor.model.record import record
from aotidoctor.program.found import Found, Place

_DROPOUT = (
    "dropout", "dropout_", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "rrelu",
    "rrelu_with_noise",
)  # fmt: skip
_BATCH_NORM = (
    "batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
)  # fmt: skip
_TRAINING = {**dict.fromkeys(_DROPOUT, "dropout"), **dict.fromkeys(_BATCH_NORM, "batch-norm")}
# There is no other way to call these.
_ALWAYS = ("_batch_norm_with_update", "_batch_norm_with_update_functional")
_EXPECTED = {
    "dropout": "model.eval() before export: dropout off",
    "batch-norm": "model.eval() before export: running statistics",
}
SWITCHES = ("train", "training")
"""Names of the argument that switches an operator to training mode."""


@record
class Call:
    """A node and what it calls (``aten.add.Tensor``); an input of a graph may have no target."""

    graph: str
    node: Place | str
    target: str | None


def add_val_missing(call: Call, observed: str, found: Found) -> None:
    """The graph says nothing of a value."""
    expected = "a val: the result of the node as a fake tensor, a number or a symbol"
    _add(call, found)("G01", "val-missing", observed=observed, expected=expected)


def add_operator_kind(call: Call, kind: str, found: Found, **facts: str) -> None:
    """The dialect has no place for a target of this ``kind``."""
    expected = (
        "an operator (torch.ops...), a higher-order operator, or one of the Python and torch functions of the dialect"
    )
    observed = f"{call.target or 'nothing'} ({kind})"
    _add(call, found)("G03", "operator-kind", observed=observed, expected=expected, **facts)


def add_not_functional(call: Call, dialect: str, found: Found) -> None:
    """The operator writes, which the dialect forbids."""
    observed = f"{call.target} writes to its arguments"
    expected = f"an operator that changes no argument, as dialect {dialect or 'ATEN'} requires"
    _add(call, found)("G04", "not-functional", observed=observed, expected=expected, dialect=dialect)


def check_training(call: Call, *, trains: bool, found: Found) -> None:
    """One of PyTorch's operators; ``trains`` says whether one of ``SWITCHES`` is on."""
    namespace, _, rest = (call.target or "").partition(".")
    name, _, overload = rest.partition(".")
    trains = trains and not overload.startswith("no_stats")
    kind = "batch-norm" if name in _ALWAYS else _TRAINING.get(name) if trains else None
    if namespace == "aten" and kind is not None:
        _add(call, found)("A07", kind, observed=f"{call.target} in training mode", expected=_EXPECTED[kind])


def add_custom(call: Call, found: Found) -> None:
    """An operator that is not PyTorch's own; ``target`` is its qualified name."""
    expected = "that it is registered wherever the package is loaded"
    _add(call, found)("A03", "custom-op", observed=f"{call.target} is called by name", expected=expected)


def _add(call: Call, found: Found) -> partial[None]:
    return partial(found.add, node=call.node, target=call.target, graph=call.graph)
