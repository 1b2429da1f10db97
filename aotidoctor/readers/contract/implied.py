"""Dtypes of inputs that no check states, from the generated kernels that take them.

Packages of torch 2.6 hold no input checks. A kernel still says as what it reads a pointer: ``const float*``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from aotidoctor.model.c10 import element_dtype
from aotidoctor.model.contract import Contract, LeafSpec


def is_described(leaf: LeafSpec) -> bool:
    """Whether the dtype and the number of dims are known."""
    return leaf.dtype is not None and leaf.rank is not None


def has_open_strides(leaf: LeafSpec) -> bool:
    """Whether no check says anything of the strides, and there are some."""
    return leaf.rank is None or (
        leaf.rank > 0 and not any(step is not None for step in (*(leaf.strides or ()), *(leaf.stride_exprs or ())))
    )


def with_implied_dtypes(contract: Contract) -> Contract:
    """``contract`` with a dtype for each tensor that has none and that all its kernels read as one and the same."""
    if all(leaf.dtype is not None for leaf in contract.tensor_leaves()):
        return contract
    read_as: dict[str, set[str]] = {}
    for name, kind in _pointers(contract):
        read_as.setdefault(name, set()).add(element_dtype(kind) or "")
    # Read as two types, or as one that is not known here: it stays open.
    certain = {name: kinds.pop() for name, kinds in read_as.items() if len(kinds) == 1 and "" not in kinds}
    leaves = (
        replace(leaf, dtype=leaf.dtype or certain.get(leaf.generated_name or ""))
        if leaf.input_index is not None
        else leaf
        for leaf in contract.leaves
    )
    return replace(contract, leaves=tuple(leaves))


def _pointers(contract: Contract) -> Iterator[tuple[str, str]]:
    """Argument and element type of each tensor that a generated kernel is given."""
    bodies = {body.name: body for body in contract.bodies}
    for call in contract.kernels:
        body = bodies.get(call.name)
        if body is None or len(call.arguments) < len(body.parameters):
            continue
        for parameter, argument in zip(body.parameters, call.arguments, strict=False):
            if parameter.pointer:
                yield argument, parameter.type
