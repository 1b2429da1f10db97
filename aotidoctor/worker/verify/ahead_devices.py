"""Rules A01 and A10: tensors on several devices, and dtypes that the code generator has no name for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotidoctor.worker.verify.graph import graphs
from aotidoctor.worker.verify.records import Records


def check_devices(program: Any, records: Records) -> None:
    """Devices and dtypes of everything that the graph computes."""
    _check_mixture(program, records)
    _check_dtypes(program, records)


def _tensors(program: Any) -> Iterator[tuple[str, Any, Any]]:
    """Path of the graph, node and tensor, for every tensor that a node gives."""
    import torch
    from torch.utils import _pytree as pytree

    for path, module in graphs(program):
        for node in module.graph.nodes:
            if node.op == "output":
                continue
            for leaf in pytree.tree_leaves(node.meta.get("val")):
                if isinstance(leaf, torch.Tensor):
                    yield path, node, leaf


def _check_mixture(program: Any, records: Records) -> None:
    """Single numbers on the CPU go with any device."""
    devices: dict[str, tuple[str, Any]] = {}
    counts: dict[str, int] = {}
    for path, node, tensor in _tensors(program):
        if tensor.dim() == 0 and tensor.device.type == "cpu":
            continue
        name = str(tensor.device)
        devices.setdefault(name, (path, node))
        counts[name] = counts.get(name, 0) + 1
    if len(devices) < 2:
        return
    rare = min(counts, key=lambda name: counts[name])
    path, node = devices[rare]
    records.add(
        "A01",
        "mixed-device",
        node=node,
        graph=path,
        observed=", ".join(f"{count} tensors on {name}" for name, count in counts.items())
        + f"; {node.name} is on {rare}",
        expected="one device",
        devices=tuple(devices),
    )


def _check_dtypes(program: Any, records: Records) -> None:
    try:
        from torch._inductor.codegen.cpp_utils import DTYPE_TO_ATEN
    except ImportError:
        return
    from torch.export.graph_signature import InputKind

    users = {
        node.name
        for node, spec in zip(
            (node for node in program.graph.nodes if node.op == "placeholder"),
            program.graph_signature.input_specs,
            strict=False,
        )
        if spec.kind is InputKind.USER_INPUT
    }
    seen: set[Any] = set()
    for path, node, tensor in _tensors(program):
        if tensor.dtype in DTYPE_TO_ATEN or tensor.dtype in seen:
            continue
        seen.add(tensor.dtype)
        is_input = not path and node.name in users
        records.add(
            "A10",
            "unsupported-input" if is_input else "unsupported",
            node=node,
            target=None if node.op == "placeholder" else node.target,
            graph=path,
            observed=f"{node.name} is {tensor.dtype} on {tensor.device}",
            expected="a dtype that the generated C++ code can name",
            dtype=str(tensor.dtype).removeprefix("torch."),
        )
