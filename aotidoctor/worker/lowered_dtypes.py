"""Find the first operator of a program that the compiler gives another dtype (job ``lowered_dtypes``).

The program is decomposed and lowered as for a compile, and no code is written: each node has the dtype that the
operator has, and the buffer that the lowering makes has one of its own. Nodes after the first wrong one follow it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aotidoctor.model.jobs import Recompile
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.tensors import short_name
from aotidoctor.worker.user_code import load_setup


def lowered_dtypes(payload: Recompile, channel: Channel) -> dict[str, Any]:
    """``wrong`` of the result: stage, operator, dtype and expected dtype, the user's line; None where all are right."""
    load_setup(payload, channel)
    channel.enter("load_reference")
    import torch
    from torch._inductor.decomposition import select_decomp_table

    program = torch.export.load(str(channel.user_cwd / payload.reference))
    channel.enter("compile")
    table = select_decomp_table()
    decomposed = program.run_decompositions(table)
    return {"wrong": _wrong_decomposition(program, table) or _wrong_lowering(decomposed)}


def _wrong_decomposition(program: Any, table: Any) -> dict[str, Any] | None:
    """The first operator whose decomposition, on its own arguments, gives another dtype than the operator."""
    import torch
    from torch.utils._pytree import tree_map_only

    for node in program.graph.nodes:
        val = node.meta.get("val")
        if node.op != "call_function" or node.target not in table or not isinstance(val, torch.Tensor):
            continue
        result = None
        # Of an operator whose decomposition refuses them nothing is known.
        with suppress(Exception), val.fake_mode:
            args, kwargs = tree_map_only(torch.fx.Node, lambda one: one.meta["val"], (node.args, node.kwargs))
            result = table[node.target](*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype != val.dtype:
            return _describe("decomposition", node, result.dtype, val.dtype)
    return None


def _wrong_lowering(program: Any) -> dict[str, Any] | None:
    import torch
    from torch._guards import detect_fake_mode
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    wrong: list[dict[str, Any]] = []

    class Lowering(GraphLowering):  # type: ignore[misc,unused-ignore]
        def run_node(self, n: Any) -> Any:
            made = super().run_node(n)
            val = n.meta.get("val")
            if not wrong and n.op == "call_function" and isinstance(val, torch.Tensor) and hasattr(made, "get_dtype"):
                dtype = made.get_dtype()
                if dtype != val.dtype:
                    wrong.append(_describe("lowering", n, dtype, val.dtype))
            return made

    inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    fake_mode = detect_fake_mode(inputs)
    lowering = Lowering(
        program.graph_module, example_inputs=inputs, shape_env=fake_mode.shape_env if fake_mode is not None else None
    )
    with V.set_graph_handler(lowering), V.set_fake_mode(fake_mode):
        lowering.run(*inputs)
    return wrong[0] if wrong else None


def _describe(stage: str, node: Any, dtype: Any, expected: Any) -> dict[str, Any]:
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    return {
        "stage": stage,
        "operator": str(node.target),
        "node": node.name,
        "dtype": short_name(dtype),
        "expected": short_name(expected),
        "where": lines[-1][:200] if lines else None,
    }
