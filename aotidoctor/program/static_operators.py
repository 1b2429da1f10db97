"""Rules A03 and A07 by names: custom operators, and operators that were left in training mode."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.program.document import Graph, Node
from aotidoctor.program.found import Found

_TRAINING = {
    **dict.fromkeys(
        ("dropout", "dropout_", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "rrelu",
         "rrelu_with_noise"), "dropout"),
    **dict.fromkeys(
        ("batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit",
         "_native_batch_norm_legit_functional"), "batch-norm"),
}  # fmt: skip
_ALWAYS = {"_batch_norm_with_update": "batch-norm", "_batch_norm_with_update_functional": "batch-norm"}
_EXPECTED = {
    "dropout": "model.eval() before export: dropout off",
    "batch-norm": "model.eval() before export: running statistics",
}
_OWN = ("aten", "prim", "prims")


def check_operators(everything: Sequence[Graph], found: Found) -> None:
    """Training mode at each place; each custom operator once."""
    seen: set[str] = set()
    for graph in everything:
        for node in graph.nodes:
            if not node.is_operator:
                continue
            _check_training(graph, node, found)
            namespace, name, overload = node.target.split(".")
            qualified = f"{namespace}::{name}" + ("" if overload == "default" else f".{overload}")
            if namespace in _OWN or qualified in seen:
                continue
            seen.add(qualified)
            found.add(
                "A03",
                "custom-op",
                node=node,
                target=qualified,
                graph=graph.path,
                observed=f"{qualified} is called by name",
                expected="that it is registered wherever the package is loaded",
            )


def _check_training(graph: Graph, node: Node, found: Found) -> None:
    namespace, name, overload = node.target.split(".")
    if namespace != "aten":
        return
    kind = _ALWAYS.get(name)
    trains = any(
        argument in ("train", "training") and given.kind == "bool" and given.value is True
        for argument, given in node.inputs
    )
    if kind is None and trains and overload != "no_stats":
        kind = _TRAINING.get(name)
    if kind is not None:
        observed = f"{node.target} in training mode"
        found.add(
            "A07",
            kind,
            node=node,
            target=node.target,
            graph=graph.path,
            observed=observed,
            expected=_EXPECTED[kind],
        )
