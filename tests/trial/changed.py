"""The exported program with one activation exchanged for another: ``python -m tests.trial.changed PROGRAM TARGET [SETUP]``.

What the package computes is then not what the program says, and the operator is known. Prints the exchanged node, or
nothing where the program has no activation.
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


def change(source: str, target: str) -> str | None:
    program = torch.export.load(source)
    for node in program.graph.nodes:
        other = _INSTEAD.get(str(node.target)) if node.op == "call_function" else None
        if other is not None:
            was, node.target, node.args, node.kwargs = node.target, other, node.args[:1], {}
            program.graph_module.recompile()
            torch.export.save(program, target)
            return f"{node.name}: {was} -> {other}"
    return None


if __name__ == "__main__":
    if len(sys.argv) > 3:
        runpy.run_path(sys.argv[3])
    print(change(sys.argv[1], sys.argv[2]) or "")
