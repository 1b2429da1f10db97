"""The values of all graphs of the rebuilt program, and the symbols in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aotidoctor.model.program import SizeRange
from aotidoctor.program.symbols import Places
from aotidoctor.program.values import Value
from aotidoctor.worker.describe import dtype_name
from aotidoctor.worker.verify.graph import graphs
from aotidoctor.worker.verify.paths import leaf_examples, user_inputs
from aotidoctor.worker.verify.records import as_place, name_of


def values(program: Any) -> Iterator[Value]:
    """What each node gives, part by part."""
    from torch.utils import _pytree as pytree

    for path, module in graphs(program):
        for node in module.graph.nodes:
            for leaf in pytree.tree_leaves(node.meta.get("val")) if node.op != "output" else ():
                yield _value(path, node, leaf)


def _value(path: str, node: Any, leaf: Any) -> Value:
    import torch

    is_tensor = isinstance(leaf, torch.Tensor)
    return Value(
        graph=path,
        node=as_place(node),
        name=node.name,
        target=None if node.op == "placeholder" else name_of(node.target),
        rank=leaf.dim() if is_tensor else None,
        dtype=dtype_name(leaf) if is_tensor else "",
        device=str(leaf.device) if is_tensor else "",
        symbols=frozenset(str(symbol) for part in (leaf.shape if is_tensor else (leaf,)) for symbol in free(part)),
    )


def free(size: Any) -> Any:
    """The symbols in a size or number."""
    return getattr(getattr(getattr(size, "node", None), "expr", None), "free_symbols", ())


def nameless() -> set[str]:
    """Dtypes that the code generator has no name for."""
    import torch

    try:
        from torch._inductor.codegen.cpp_utils import DTYPE_TO_ATEN
    except ImportError:
        return set()
    known = {item for item in vars(torch).values() if isinstance(item, torch.dtype)}
    return {str(item).removeprefix("torch.") for item in known - DTYPE_TO_ATEN.keys()}


def ranges(program: Any) -> dict[str, SizeRange]:
    """Bounds by symbol."""
    constraints = program.range_constraints.items()
    return {str(name): SizeRange(low=_integer(found.lower), high=_integer(found.upper)) for name, found in constraints}


def _integer(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None


def places(program: Any) -> Places:
    """Where each symbol is a size of an input."""
    examples, inputs = leaf_examples(program), user_inputs(program)
    found: dict[str, list[tuple[str, int | None]]] = {}
    for at, item in enumerate(inputs):
        sizes = getattr(examples[at], "shape", ()) if len(examples) == len(inputs) else ()
        for dim, size in enumerate(getattr(item.val, "shape", ())):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if getattr(expression, "is_symbol", False):
                sample = sizes[dim] if dim < len(sizes) else None
                found.setdefault(str(expression), []).append((f"{item.path}.shape[{dim}]", sample))
    return found
