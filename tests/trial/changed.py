"""The exported program with one activation exchanged for another: ``python -m tests.trial.changed PROGRAM TARGET SAMPLE [SETUP]``.

What the package computes is then not what the program says, and the operator is known. Prints the exchanged node, or
nothing where the program has none that matters.
"""

from __future__ import annotations

import runpy
import sys

import torch

_INSTEAD = {
    "aten.gelu.default": torch.ops.aten.relu.default,
    "aten.silu.default": torch.ops.aten.relu.default,
    "aten.relu.default": torch.ops.aten.tanh.default,
    "aten.hardtanh.default": torch.ops.aten.relu.default,
    "aten.hardswish.default": torch.ops.aten.relu.default,
    "aten.leaky_relu.default": torch.ops.aten.tanh.default,
    "aten.tanh.default": torch.ops.aten.relu.default,
}


def change(source: str, target: str, sample: str) -> str | None:
    """Only where the outputs on ``sample`` are then others: with weights near zero tanh is relu's equal."""
    program, given = torch.export.load(source), torch.load(sample, weights_only=False)
    before = _outputs(program, given)
    for node in program.graph.nodes:
        other = _INSTEAD.get(str(node.target)) if node.op == "call_function" else None
        if other is None:
            continue
        kept = node.target, node.args, node.kwargs
        node.target, node.args, node.kwargs = other, node.args[:1], {}
        program.graph_module.recompile()
        if any(_apart(one, two) for one, two in zip(before, _outputs(program, given), strict=True)):
            torch.export.save(program, target)
            return f"{node.name}: {kept[0]} -> {other}"
        node.target, node.args, node.kwargs = kept
        program.graph_module.recompile()
    return None


def _outputs(program: torch.export.ExportedProgram, given: dict) -> list[torch.Tensor]:
    with torch.no_grad():
        found = program.module()(*given["args"], **given["kwargs"])
    return [leaf.detach().double() for leaf in torch.utils._pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor)]


def _apart(one: torch.Tensor, two: torch.Tensor) -> bool:
    return bool((one - two).abs().max() > 1e-4 * two.abs().max()) if one.numel() else False


if __name__ == "__main__":
    if len(sys.argv) > 4:
        runpy.run_path(sys.argv[4])
    print(change(*sys.argv[1:4]) or "")
